"""Who computes the shards of a stage: this process, or the machines of a Ray cluster.

A runner maps works to shards and returns them in order; the caller alone writes them. So what is on disk is
the same, byte by byte, whoever computed, and a machine that dies costs time only.

Only stages whose shards are independent are spread as shards (`Stage.runs_anywhere`): filters, reference checks,
verdicts, programs on tests. Reading stays with its file. Of sampling, one process asks,
decides and stores; only verdicts that take long are spread (`spread_judge`).
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
        """Return a verifier whose `submit` judges where there is room, with the verdicts of this one."""
        ...

    def map(self, works: Iterable[tuple[int, Callable[[], Made]]]) -> Iterator[tuple[int, Made]]:
        """Yield what each work makes with its number, in the order given. A work may be called more than once, and on a
        copy.
        """
        ...


class LocalRunner:
    """This process, one shard after the other; the verifier spreads over its cores by itself."""

    def spread_judge(self, judge: Judge) -> Judge:
        """Return the verifier as it is."""
        return judge

    def map(self, works: Iterable[tuple[int, Callable[[], Made]]]) -> Iterator[tuple[int, Made]]:
        for index, work in works:
            yield index, work()


_running: ContextVar[ShardRunner | None] = ContextVar("runner", default=None)


def current_runner(runs_anywhere: bool) -> ShardRunner:
    """Return the runner in force: that of `computing_on` where shards may be computed anywhere, else this process."""
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
