"""A sandbox on each rung of the ladder that works here, started once; attacks run on all of them.

What takes seconds and rests on the limits alone, which are the same on every rung, runs on the strongest only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from curation.records import VerifierError
from curation.verify.sandbox import Limits, RunResult, Sandbox

ISOLATING = ("namespaces", "user-namespace", "landlock")
BY_PYTHON = "namespaces, without a compiler"
"""The strongest rung where no C compiler is found, so that Python starts the programs."""
QUICK = Limits(cpu_s=1.0, wall_s=3.0)

ONCE = {
    "test_a_constant_expression_that_loops_ends",
    "test_a_constant_that_never_ends_to_be_computed",
    "test_a_huge_thread_stack_passes",
    "test_a_long_source_compiles",
    "test_a_parser_bomb_harms_only_itself",
    "test_a_template_bomb_ends",
    "test_250_mb_pass",
    "test_any_bytes_come_out_as_they_are",
    "test_an_include_of_itself_ends",
    "test_four_threads_pass",
    "test_huge_diagnostics_are_cut",
    "test_ten_megabytes_in_and_out",
    "test_170_mb_of_recursion_pass",
    "test_untouched_arrays_pass",
}

ON_EVERY_RUNG = {"test_the_next_test_finds_nothing_of_the_last"}
"""What `make test` runs on every rung; the rest on the weaker ones is a repetition, for `make test-all`. The doctor's
properties on every rung are a gate too (`programs/doctor`)."""

Runner = Callable[..., RunResult]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every rung in turn for what uses the box, or the strongest that works here (None)."""
    if "box" in metafunc.fixturenames:
        rungs = [None] if metafunc.function.__name__ in ONCE else list(ISOLATING)
        if rungs != [None] and metafunc.module.__name__.endswith(("_files", "_kernel")):
            rungs.append(BY_PYTHON)
        repeats = () if metafunc.function.__name__ in ON_EVERY_RUNG else rungs[1:]
        marked = [pytest.param(rung, marks=pytest.mark.slow if rung in repeats else ()) for rung in rungs]
        metafunc.parametrize("box", marked, indirect=True, scope="session", ids=lambda rung: rung or "strongest")


@pytest.fixture(scope="session")
def box(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One slot per kind, on one rung."""
    bare = request.param == BY_PYTHON
    try:
        with pytest.MonkeyPatch.context() as patch:
            if bare:
                patch.setenv("PATH", "")
                patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
            sandbox = Sandbox(workers=1, rung=ISOLATING[0] if bare else request.param)
    except VerifierError as error:
        pytest.skip(f"{error}")
    assert ("no C compiler is installed" in sandbox.description) == bare
    with sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def strongest() -> Iterator[Sandbox]:
    """Two slots on the strongest rung."""
    with Sandbox(workers=2) as sandbox:
        yield sandbox


@pytest.fixture
def python(box: Sandbox) -> Runner:
    """Run a Python program on one input; afterwards the box must still work."""

    def run(source: str, stdin: bytes = b"", limits: Limits = QUICK, **more: object) -> RunResult:
        (ran,) = box.run_python(source, [stdin], limits, **more)  # type: ignore[arg-type]
        (after,) = box.run_python("import os; print(sorted(os.listdir('.')))", [b""], QUICK)
        assert after.stdout == b"[]\n", "the next program finds an empty folder and a working box"
        return ran

    return run


@pytest.fixture(scope="session")
def cpp(box: Sandbox) -> Callable[..., RunResult]:
    """Compile and run a C++ program on one input; sources are compiled once per rung."""
    made: dict[str, bytes] = {}

    def run(source: str, stdin: bytes = b"", limits: Limits = QUICK) -> RunResult:
        if source not in made:
            compiled = box.compile({"main.cpp": source.encode()}, ["g++", "-O1", "-std=c++20", "-pthread", "main.cpp"])
            assert compiled.artifact is not None, compiled
            made[source] = compiled.artifact
        (ran,) = box.run_binary(made[source], [stdin], limits)
        return ran

    return run
