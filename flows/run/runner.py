"""Compute a stage's shards on this machine or a Ray cluster.

Invariant: the caller alone writes shards, in order, so files are the same on every runner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from curation.storage.stages import Shard
from curation.verify.math_judge import Judge

Work = Callable[[], Shard]
Made = TypeVar("Made")
"""A shard, or a group's shards."""


class LocalRunner:
    """Computes shards, and verdicts of sampling, in this process."""

    def spread_judge(self, judge: Judge) -> Judge:
        """Return an equal verifier, whose `submit` may judge elsewhere."""
        return judge

    def map(self, works: Iterable[tuple[int, Callable[[], Made]]]) -> Iterator[tuple[int, Made]]:
        """Yield (number, result) in order; elsewhere, work may run repeatedly, as a copy."""
        for index, work in works:
            yield index, work()


_running: ContextVar[LocalRunner | None] = ContextVar("runner", default=None)


def current_runner(runs_anywhere: bool) -> LocalRunner:
    """Return `computing_on`'s runner, or this process for dependent shards."""
    runner = _running.get()
    return runner if runner is not None and runs_anywhere else LocalRunner()


@contextmanager
def computing_on(runner: LocalRunner) -> Iterator[None]:
    """Compute shards on a runner within the block."""
    token = _running.set(runner)
    try:
        yield
    finally:
        _running.reset(token)
