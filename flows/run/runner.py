"""Compute a stage's shards on this machine or a Ray cluster.

Invariant: the caller alone writes shards, in order, so files have the same bytes on every runner. Only independent
shards are spread (`Stage.runs_anywhere`); in sampling, only slow verdicts are (`spread_judge`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

from curation.storage.stages import Shard
from curation.verify.math_judge import Judge

Work = Callable[[], Shard]
Made = TypeVar("Made")
"""What a work makes: a shard, or the shards of a group."""


class ShardRunner(Protocol):
    """Computes shards, and verdicts of sampling."""

    def spread_judge(self, judge: Judge) -> Judge:
        """Return a verifier with the same verdicts, whose `submit` may judge elsewhere."""
        ...

    def map(self, works: Iterable[tuple[int, Callable[[], Made]]]) -> Iterator[tuple[int, Made]]:
        """Yield each work's result with its number, in order; a work may run more than once, and as a copy."""
        ...


class LocalRunner:
    """Computes shards in this process, one at a time."""

    def spread_judge(self, judge: Judge) -> Judge:
        """Return the verifier as it is."""
        return judge

    def map(self, works: Iterable[tuple[int, Callable[[], Made]]]) -> Iterator[tuple[int, Made]]:
        for index, work in works:
            yield index, work()


_running: ContextVar[ShardRunner | None] = ContextVar("runner", default=None)


def current_runner(runs_anywhere: bool) -> ShardRunner:
    """Return the runner of `computing_on` if shards may be computed anywhere, else this process."""
    runner = _running.get()
    return runner if runner is not None and runs_anywhere else LocalRunner()


@contextmanager
def computing_on(runner: ShardRunner) -> Iterator[None]:
    """Have a runner compute shards for the length of the block."""
    token = _running.set(runner)
    try:
        yield
    finally:
        _running.reset(token)
