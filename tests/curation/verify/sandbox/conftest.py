"""A sandbox on each rung of the ladder that works here, started once; attacks run on all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from curation.records import VerifierError
from curation.verify.sandbox import Limits, Ran, Sandbox

ISOLATING = ("namespaces", "user-namespace", "landlock")
QUICK = Limits(cpu_s=1.0, wall_s=3.0)

Runner = Callable[..., Ran]


@pytest.fixture(scope="session", params=ISOLATING)
def box(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """One slot per kind, on one rung; every rung in turn."""
    try:
        sandbox = Sandbox(workers=1, rung=request.param)
    except VerifierError as error:
        pytest.skip(f"{error}")
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

    def run(source: str, stdin: bytes = b"", limits: Limits = QUICK, **more: object) -> Ran:
        (ran,) = box.run_python(source, [stdin], limits, **more)  # type: ignore[arg-type]
        (after,) = box.run_python("import os; print(sorted(os.listdir('.')))", [b""], QUICK)
        assert after.stdout == b"[]\n", "the next program finds an empty folder and a working box"
        return ran

    return run


@pytest.fixture(scope="session")
def cpp(box: Sandbox) -> Callable[..., Ran]:
    """Compile and run a C++ program on one input; sources are compiled once per rung."""
    made: dict[str, bytes] = {}

    def run(source: str, stdin: bytes = b"", limits: Limits = QUICK) -> Ran:
        if source not in made:
            compiled = box.compile({"main.cpp": source.encode()}, ["g++", "-O1", "-std=c++20", "-pthread", "main.cpp"])
            assert compiled.artifact is not None, compiled
            made[source] = compiled.artifact
        (ran,) = box.run_binary(made[source], [stdin], limits)
        return ran

    return run
