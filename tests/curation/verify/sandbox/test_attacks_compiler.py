"""Attacks on the compiler, and through it on the host."""

from __future__ import annotations

import pytest

from curation.verify.sandbox import CompileResult, Ending, Limits, Sandbox
from tests.curation.verify.sandbox.rungs import ISOLATING, STRONGEST, on

LIMITS = Limits(cpu_s=2.0, wall_s=8.0, memory_mb=600, output_bytes=1 << 20, file_mb=64, processes=32)


def built(box: Sandbox, source: str, limits: Limits = LIMITS) -> CompileResult:
    made = box.compile({"main.cpp": source.encode()}, ["g++", "-std=c++20", "-O1", "main.cpp"], limits)
    assert made.run.ending is not Ending.BROKEN, made
    again = box.compile({"main.cpp": b"int main(){}"}, ["g++", "main.cpp"])
    assert again.ok, again
    return made


@on(*ISOLATING)
def test_a_host_file_cannot_be_compiled_in(box: Sandbox) -> None:
    sources = [f'#include "{path}"\nint main(){{}}' for path in ("/etc/passwd", "/etc/shadow", "/proc/1/environ")]
    for source in (*sources, 'asm(".incbin \\"/etc/shadow\\""); int main(){}'):
        made = built(box, source)
        assert not made.ok, source
        assert "root:" not in made.log


@on(*ISOLATING)
def test_sources_leave_nothing_for_the_next(box: Sandbox) -> None:
    assert box.compile({"secret.h": b"#define X 1\n", "main.cpp": b"int main(){}"}, ["g++", "main.cpp"]).ok
    assert not built(box, '#include "secret.h"\nint main(){ return X; }').ok


def test_an_endless_include_and_a_huge_array_end(box: Sandbox) -> None:
    assert not built(box, '#include "/dev/zero"\nint main(){}').ok
    assert not built(box, "char a[1 << 30] = {1}; int main(){ return a[5]; }").ok


TEMPLATES = (
    "template<int N, int M> struct F { static const long v = F<N-1, M>::v + F<N-1, M+N>::v; };"
    "template<int M> struct F<0, M> { static const long v = M; }; int main(){ return F<800, 1>::v & 1; }"
)
ENDLESS = {
    "an include of itself": '#include "main.cpp"\n#include "main.cpp"\nint main(){}',
    "a template bomb": TEMPLATES,
    "a constant expression that loops": "constexpr long f(){ long n = 0; for (long i = 0; i < 1L << 60; i++) n += i; "
    "return n; }constexpr long x = f(); int main(){ return x; }",
}


@pytest.mark.slow
@pytest.mark.parametrize("way", ENDLESS)
@on(STRONGEST)
def test_what_compiles_without_end_ends(box: Sandbox, way: str) -> None:
    assert not built(box, ENDLESS[way]).ok


@on(STRONGEST)
def test_an_error_is_the_programs_and_its_text_is_cut(box: Sandbox) -> None:
    made = built(box, "int main(){ return y; }")
    assert (made.ok, made.run.exit_code, made.artifact) == (False, 1, None)
    assert "was not declared" in made.log
    made = built(box, "#define A x y z;\n" + "A\n" * 30_000 + "int main(){}")
    assert not made.ok
    assert len(made.log) <= 2 * 65536


@pytest.mark.slow
@on(STRONGEST)
def test_a_long_source_and_one_of_a_hundred_files_compile(box: Sandbox) -> None:
    lines = "\n".join(f"int f{i}(int x){{ return x + {i}; }}" for i in range(1500))
    limits = Limits(cpu_s=20, memory_mb=1000, file_mb=64, processes=32)
    assert built(box, lines + "\nint main(){ return 0; }", limits).ok
    headers = {f"part{number}.h": f"int part{number} = {number};\n".encode() for number in range(100)}
    main = "".join(f'#include "{name}"\n' for name in headers) + "int main() { return part99; }"
    compiled = box.compile({"main.cpp": main.encode(), **headers}, ["g++", "main.cpp"])
    assert compiled.artifact is not None, compiled
    (ran,) = box.run_binary(compiled.artifact, [b""], Limits())
    assert ran.exit_code == 99
