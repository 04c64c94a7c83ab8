"""Attacks on the compiler, and through it on the host."""

from __future__ import annotations

import pytest

from curation.verify.sandbox import CompileResult, Ending, Limits, Sandbox

LIMITS = Limits(cpu_s=2.0, wall_s=8.0, memory_mb=600, output_bytes=1 << 20, file_mb=64, processes=32)


def built(box: Sandbox, source: str, limits: Limits = LIMITS) -> CompileResult:
    made = box.compile({"main.cpp": source.encode()}, ["g++", "-std=c++20", "-O1", "main.cpp"], limits)
    assert made.run.ending is not Ending.BROKEN, made
    again = box.compile({"main.cpp": b"int main(){}"}, ["g++", "main.cpp"])
    assert again.ok, again
    return made


@pytest.mark.parametrize(
    "source",
    [
        '#include "/etc/passwd"\nint main(){}',
        '#include "/etc/shadow"\nint main(){}',
        '#include "/proc/1/environ"\nint main(){}',
        'asm(".incbin \\"/etc/shadow\\""); int main(){}',
    ],
)
def test_a_host_file_cannot_be_compiled_in(box: Sandbox, source: str) -> None:
    made = built(box, source)
    assert not made.ok
    assert "root:" not in made.log


def test_an_endless_include_ends(box: Sandbox) -> None:
    assert not built(box, '#include "/dev/zero"\nint main(){}').ok


def test_an_include_of_itself_ends(box: Sandbox) -> None:
    assert not built(box, '#include "main.cpp"\n#include "main.cpp"\nint main(){}').ok


def test_a_template_bomb_ends(box: Sandbox) -> None:
    source = "template<int N, int M> struct F { static const long v = F<N-1, M>::v + F<N-1, M+N>::v; };"
    source += "template<int M> struct F<0, M> { static const long v = M; }; int main(){ return F<800, 1>::v & 1; }"
    assert not built(box, source).ok


def test_a_constant_expression_that_loops_ends(box: Sandbox) -> None:
    source = "constexpr long f(){ long n = 0; for (long i = 0; i < 1L << 60; i++) n += i; return n; }"
    assert not built(box, source + "constexpr long x = f(); int main(){ return x; }").ok


def test_a_huge_initialised_array_ends(box: Sandbox) -> None:
    assert not built(box, "char a[1 << 30] = {1}; int main(){ return a[5]; }").ok


def test_huge_diagnostics_are_cut(box: Sandbox) -> None:
    source = "#define A x y z;\n" + "A\n" * 30_000 + "int main(){}"
    made = built(box, source)
    assert not made.ok
    assert len(made.log) <= 2 * 65536


def test_an_error_is_the_programs_and_told(box: Sandbox) -> None:
    made = built(box, "int main(){ return y; }")
    assert (made.ok, made.run.exit_code, made.artifact) == (False, 1, None)
    assert "was not declared" in made.log


def test_a_long_source_compiles(box: Sandbox) -> None:
    lines = "\n".join(f"int f{i}(int x){{ return x + {i}; }}" for i in range(1500))
    assert built(
        box, lines + "\nint main(){ return 0; }", Limits(cpu_s=20, memory_mb=1000, file_mb=64, processes=32)
    ).ok


def test_sources_leave_nothing_for_the_next(box: Sandbox) -> None:
    assert box.compile({"secret.h": b"#define X 1\n", "main.cpp": b"int main(){}"}, ["g++", "main.cpp"]).ok
    assert not built(box, '#include "secret.h"\nint main(){ return X; }').ok


def test_a_program_of_a_hundred_files_compiles(box: Sandbox) -> None:
    headers = {f"part{number}.h": f"int part{number} = {number};\n".encode() for number in range(100)}
    main = "".join(f'#include "{name}"\n' for name in headers) + "int main() { return part99; }"
    compiled = box.compile({"main.cpp": main.encode(), **headers}, ["g++", "main.cpp"])
    assert compiled.artifact is not None, compiled
    (ran,) = box.run_binary(compiled.artifact, [b""], Limits())
    assert ran.exit_code == 99


def test_an_output_that_is_no_program_is_not_run(box: Sandbox) -> None:
    (ran,) = box.run_binary(b"not an ELF file", [b""], Limits())
    assert ran.ending is Ending.BROKEN
    assert ran.note
