"""Compute shards on a Ray cluster (the extra `ray`), RAY_ADDRESS's or a local one.

Invariants: every node has the run folder and this package. Shards of a dead worker are repeated; errors of the work
are raised here.

Ray's niceness makes programs exceed wall time; start clusters with RAY_worker_niceness=0.
"""

from __future__ import annotations

import atexit
import copyreg
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from curation.config import Recipe
from curation.plugins import PluginRef
from curation.records import AttemptKey, ConfigError
from curation.storage.attempts import AttemptStore
from curation.verify.math_judge import Judge, MathJudge
from curation.verify.programs.judge import ProgramJudge
from curation.verify.programs.problem import CodeProblem
from curation.verify.programs.tools import Runner
from flows.run.judge_ray import SpreadJudge
from flows.run.runner import Made, computing_on

AHEAD = 2
"""Shards sent for each core of the cluster: one to work on and one to go on with."""

HERE = "local"
"""Without an address Ray would go to the last cluster that was started on this machine, be it alive or not."""

RETRIES = -1
"""How often a shard is computed again where its node died: as often as it takes."""


class RayRunner:
    """Computes shards with a running Ray."""

    def __init__(self) -> None:
        import ray

        self._ray: Any = ray
        self._compute = ray.remote(num_cpus=1, max_retries=RETRIES)(_compute)

    def map(self, works: Iterable[tuple[int, Callable[[], Made]]]) -> Iterator[tuple[int, Made]]:
        """Yield (number, result) in order."""
        sent: deque[tuple[int, Any]] = deque()
        for index, work in works:
            sent.append((index, self._compute.remote(work)))
            if len(sent) >= AHEAD * self.cores:
                yield self._next(sent)
        while sent:
            yield self._next(sent)

    @property
    def cores(self) -> int:
        """Return the cluster's cores."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def spread_judge(self, judge: Judge) -> Judge:
        """Return a verifier with slow verdicts on the cluster."""
        return SpreadJudge(judge, self._ray)

    def _next(self, sent: deque[tuple[int, Any]]) -> tuple[int, Any]:
        index, reference = sent.popleft()
        try:
            made = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.as_instanceof_cause() from error
        return index, made


def _compute(work: Callable[[], Made]) -> Made:
    return work()


@contextmanager
def runner_of(recipe: Recipe) -> Iterator[None]:
    """Compute shards on the recipe's runner within the block.

    Raises:
        ConfigError: it is not installed or does not answer.
    """
    if recipe.runner == "local":
        yield
        return
    with ray_runner() as runner, computing_on(runner):
        yield


@contextmanager
def ray_runner() -> Iterator[RayRunner]:
    """Use RAY_ADDRESS's cluster or a local one within the block.

    Raises:
        ConfigError: Ray is not installed, or does not answer.
    """
    try:
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")
        import ray
    except ImportError as error:
        raise ConfigError('runner = "ray" needs Ray; install the extra `ray`, or set runner=local.') from error
    started = not ray.is_initialized()
    if started:
        address = os.environ.get("RAY_ADDRESS") or HERE
        try:
            ray.init(address=address, include_dashboard=False, log_to_driver=False, configure_logging=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ConfigError(f"the Ray cluster at {address} does not answer ({error}).") from error
    copyreg.pickle(MathJudge, _reduce_judge)
    copyreg.pickle(AttemptStore, _reduce_store)
    copyreg.pickle(Runner, lambda runner: (_runner, (runner.rung, runner.allow_none)))
    copyreg.pickle(ProgramJudge, _reduce_programs)
    try:
        yield RayRunner()
    finally:
        if started:
            ray.shutdown()


def _reduce_judge(judge: MathJudge) -> tuple[Any, ...]:
    return _judge, (judge.limits.step_s, judge.limits.memory_mb, judge.response_format, judge.judges)


@lru_cache(maxsize=4)
def _judge(limit_s: float, memory_mb: int, response_format: str, judges: tuple[PluginRef, ...]) -> MathJudge:
    """Return this worker's verifier."""
    return MathJudge(1, limit_s, memory_mb, response_format, judges)


@cache
def _runner(rung: str | None, allow_none: bool) -> Runner:
    """Return this worker's sandbox, with one slot."""
    runner = Runner(1, rung=rung, allow_none=allow_none)
    atexit.register(runner.__exit__, None, None, None)
    return runner


def _reduce_programs(judge: ProgramJudge) -> tuple[Any, ...]:
    return _programs, (judge.find, judge.seed, judge.tests, judge.runner)


def _programs(find: Callable[[str], CodeProblem], seed: int, tests: int, runner: Runner) -> ProgramJudge:
    return ProgramJudge(find, seed, tests=tests, runner=runner)


def _reduce_store(store: AttemptStore) -> tuple[Any, ...]:
    return _store, (str(store.folder.parent), store.key, store.height)


@lru_cache(maxsize=4)
def _store(folder: str, key: AttemptKey, height: int) -> AttemptStore:
    """Return a readable attempt store, reopened after growth."""
    assert height >= 0
    return AttemptStore(Path(folder), key, create=False)
