"""Who computes the shards of a stage: this process, or the machines of a Ray cluster.

A runner maps works to shards and hands them over in order; the one who asked writes them, alone. So what is on disk is
the same, byte by byte, whoever computed, and a machine that dies costs time only.

Only stages whose shards stand for themselves are spread (`SPREAD`): filters, reference checks, verdicts, programs on
tests. Sampling stays with its policy, whose engine or servers are spread by themselves, and reading stays with its
file. Verdicts on attempts are made beside sampling; the stage spreads where they are made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from curation.config import Recipe
from curation.store import Shard

Work = Callable[[], Shard]

SPREAD = frozenset({"statements", "programs", "references", "matrix", "stage1.verdicts", "stage2.verdicts"})
"""Stages whose shards another machine may compute."""


class Runner(Protocol):
    """Whoever computes shards."""

    def map(self, works: Iterable[tuple[int, Work]]) -> Iterator[tuple[int, Shard]]:
        """Each shard with its number, in the order given. A work may be called more than once, and on a copy."""
        ...


class Local:
    """This process, one shard after the other; the verifier spreads over its cores by itself."""

    def map(self, works: Iterable[tuple[int, Work]]) -> Iterator[tuple[int, Shard]]:
        for index, work in works:
            yield index, work()


_running: ContextVar[Runner | None] = ContextVar("runner", default=None)


def runner_of(stage: str) -> Runner:
    """Who computes the shards of a stage of this name, inside `spreading`."""
    runner = _running.get()
    return runner if runner is not None and stage in SPREAD else Local()


@contextmanager
def spreading(recipe: Recipe) -> Iterator[None]:
    """Have the recipe's runner compute shards for the length of the block.

    Raises:
        ConfigError: the runner is not installed, or cannot be reached.
    """
    if recipe.runner == "local":
        yield
        return
    from flows.run.runner_ray import ray_runner

    with ray_runner(recipe.verify) as runner:
        token = _running.set(runner)
        try:
            yield
        finally:
            _running.reset(token)
