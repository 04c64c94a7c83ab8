"""A sandbox on each rung of the ladder that works here, started once; `rungs` states which tests run on which.

`make test` runs a test on its first rung only, the others are for `make test-all`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from curation.records import VerifierError
from curation.verify.sandbox import Limits, RunResult, Sandbox
from tests.curation.verify.sandbox.rungs import USUAL, Runner

QUICK = Limits(cpu_s=1.0, wall_s=3.0)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what uses the box on each of its rungs in turn."""
    if "box" in metafunc.fixturenames:
        first, *others = getattr(metafunc.function, "rungs", getattr(metafunc.module, "RUNGS", USUAL))
        marks = () if getattr(metafunc.function, "quick", False) else pytest.mark.slow
        rungs = [first, *(pytest.param(rung, marks=marks) for rung in others)]
        metafunc.parametrize("box", rungs, indirect=True, scope="session")


@pytest.fixture(scope="session")
def box(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """One slot per kind, on one rung."""
    try:
        sandbox = Sandbox(workers=1, rung=request.param)
    except VerifierError as error:
        pytest.skip(f"{error}")
    with sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def strongest() -> Iterator[Sandbox]:
    """Two slots on the strongest rung that works here."""
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
