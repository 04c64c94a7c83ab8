"""Compute a stage's shards on this machine, or shards and slow verdicts on Ray (RAY_ADDRESS, or a local cluster).

Invariants: the caller alone writes shards, in order, so files are the same on every runner. Every node has the run
folder and this package. Errors of the work are raised here.

Start clusters with RAY_worker_niceness=0, else programs exceed their time.
"""

from __future__ import annotations

import atexit
import copyreg
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

from curation.config import Recipe
from curation.records import ConfigError
from curation.storage.stages import Shard
from curation.verify.math_judge import Judge, JudgeTask, MathJudge, Verdict
from curation.verify.programs.judge import ProgramJudge
from curation.verify.programs.problem import CodeProblem
from curation.verify.programs.tools import Runner

Work = Callable[[], Shard]
Name = TypeVar("Name")
Made = TypeVar("Made")


class LocalRunner:
    """Computes shards, and verdicts of sampling, in this process."""

    def spread_judge(self, judge: Judge) -> Judge:
        """Return an equal verifier, whose `submit` may judge elsewhere."""
        return judge

    def map(self, works: Iterable[tuple[Name, Callable[[], Made]]]) -> Iterator[tuple[Name, Made]]:
        """Yield (name, result) in order; elsewhere, work may run repeatedly, as a copy."""
        for name, work in works:
            yield name, work()


_running: ContextVar[LocalRunner | None] = ContextVar("runner", default=None)


def current_runner(runs_anywhere: bool) -> LocalRunner:
    """Return `runner_of`'s runner, or this process for dependent shards."""
    runner = _running.get()
    return runner if runner is not None and runs_anywhere else LocalRunner()


AHEAD = 2  # shards sent per core: one in work, one waiting
HERE = "local"  # without an address, Ray joins this machine's last cluster, even a dead one
RETRIES = -1  # repetitions of a task whose node died: unlimited


class RayRunner(LocalRunner):
    """Computes shards with a running Ray."""

    def __init__(self) -> None:
        import ray

        self._ray: Any = ray
        self._compute = ray.remote(num_cpus=1, max_retries=RETRIES)(_compute)

    def map(self, works: Iterable[tuple[Name, Callable[[], Made]]]) -> Iterator[tuple[Name, Made]]:
        """Yield (name, result) in order."""
        sent: deque[tuple[Name, Any]] = deque()
        for name, work in works:
            sent.append((name, self._compute.remote(work)))
            if len(sent) >= AHEAD * max(1, int(self._ray.cluster_resources().get("CPU", 1))):  # nodes may join
                yield self._next(sent)
        while sent:
            yield self._next(sent)

    def spread_judge(self, judge: Judge) -> Judge:
        """Return a verifier with slow verdicts on the cluster."""
        spread: Any = SpreadJudge(judge, self._ray)
        return spread  # type: ignore[no-any-return]

    def _next(self, sent: deque[tuple[Name, Any]]) -> tuple[Name, Any]:
        name, reference = sent.popleft()
        try:
            return name, self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from error


class SpreadJudge:
    """A verifier whose `submit` sends slow verdicts to the cluster."""

    def __init__(self, judge: Judge, ray: Any) -> None:
        self._judge, self._ray = judge, ray
        self._shared: Any = None
        self._submit = ray.remote(num_cpus=1, max_retries=RETRIES)(_verdicts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._judge, name)

    def submit(self, task: JudgeTask, final_answers: Sequence[str | None] | None = None) -> Future[tuple[Verdict, ...]]:
        """Return a future with a task's verdicts, on responses or final answers."""
        judge = self._judge
        found = (
            [judge.final_answer(response) for response in task.responses]
            if final_answers is None
            else list(final_answers)
        )
        quick = judge.at_once(task, found) if isinstance(judge, MathJudge) else None
        if quick is not None or all(answer is None for answer in found):
            return judge.submit(task, found)
        self._shared = self._shared or (self._ray.put(judge),)
        slow: Future[tuple[Verdict, ...]] = self._submit.remote(
            self._shared, replace(task, responses=()), found
        ).future()
        return slow


def _verdicts(shared: tuple[Any], task: JudgeTask, final_answers: list[str | None]) -> tuple[Verdict, ...]:
    """Judge in a worker; Ray would fetch a judge that is not in a tuple for every task."""
    return _fetched(*shared).submit(task, final_answers).result()


@lru_cache(maxsize=4)
def _fetched(reference: Any) -> Judge:
    import ray

    judge: Judge = ray.get(reference)
    return judge


def _compute(work: Callable[[], Made]) -> Made:
    return work()


@contextmanager
def runner_of(recipe: Recipe) -> Iterator[None]:
    """Compute shards on the recipe's runner within the block."""
    if recipe.runner == "local":
        yield
        return
    with ray_runner() as runner:
        token = _running.set(runner)
        try:
            yield
        finally:
            _running.reset(token)


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
    for kind, reduced in _REDUCED.items():
        copyreg.pickle(kind, reduced)
    try:
        yield RayRunner()
    finally:
        if started:
            ray.shutdown()


@lru_cache(maxsize=16)
def _made(kind: Callable[..., Any], *arguments: Any) -> Any:
    """Make a worker's copy of an object once."""
    made = kind(*arguments)
    if isinstance(made, Runner):
        atexit.register(made.__exit__, None, None, None)
    return made


def _runner(rung: str | None, allow_none: bool) -> Runner:
    return Runner(1, rung=rung, allow_none=allow_none)


def _programs(find: Callable[[str], CodeProblem], seed: int, tests: int | None, runner: Runner) -> ProgramJudge:
    return ProgramJudge(find, seed, tests=tests, runner=runner)


_REDUCED: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    MathJudge: lambda it: (_made, (MathJudge, 1, it.limits.step_s, it.limits.memory_mb, it.response_format, it.judges)),
    Runner: lambda it: (_made, (_runner, it.rung, it.allow_none)),
    ProgramJudge: lambda it: (_programs, (it.find, it.seed, it.tests, it.runner)),
}
"""How objects with processes or files of their own travel to workers."""
