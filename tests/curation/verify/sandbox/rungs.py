"""The rungs that a test of the sandbox runs on, and attacks that must be refused, tried by one program.

An attack is tried where the rungs differ for it by what confines it. What only a limit common to all rungs stops runs
on the strongest rung and on Landlock, which has no namespaces; what no rung has a part in runs on the strongest alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from curation.verify.sandbox import Ending, RunResult

STRONGEST, USER, LANDLOCK = ISOLATING = ("namespaces", "user-namespace", "landlock")
USUAL = (STRONGEST, LANDLOCK)

Runner = Callable[..., RunResult]


Test = TypeVar("Test", bound=Callable[..., None])


def on(*rungs: str, quick: bool = False) -> Callable[[Test], Test]:
    """Run a test on these rungs and no other; with ``quick``, `make test` runs it on more than the first."""

    def mark(test: Test) -> Test:
        test.__dict__.update(rungs=rungs, quick=quick)
        return test

    return mark


TRY = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*words):
    if (result := libc.syscall(*words)) < 0: raise OSError(ctypes.get_errno(), "refused")
    return result
def attempt(name, act):
    try: print("DONE", name, repr(act())[:200])
    except (OSError, ImportError, ValueError, RuntimeError) as error: print("refused", name, type(error).__name__)
"""
"""Tries what must be refused; `call` is a system call that fails as one of Python's does."""


def attempts(acts: Iterable[str], before: str = "") -> str:
    """Return a program that tries each of the acts, after ``before``."""
    tried = (f"attempt({act!r}, lambda: {act})" for act in acts)
    return "\n".join([TRY, before, *tried])


def assert_refused(ran: RunResult, count: int) -> None:
    """Assert that a program of ``count`` attempts came to its end, and that each of them was refused."""
    assert ran.ending is Ending.EXITED, ran
    lines = ran.stdout.decode().splitlines()
    assert [line for line in lines if not line.startswith("refused ")] == [], ran
    assert len(lines) == count, ran
