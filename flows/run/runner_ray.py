"""Compute shards and slow verdicts on a Ray cluster, RAY_ADDRESS's or a local one.

Invariants: every node has the run folder and this package. Errors of the work are raised here.

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
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from curation.config import Recipe
from curation.plugins import PluginRef
from curation.records import AttemptKey, ConfigError, Outcome
from curation.storage.attempts import AttemptStore
from curation.verify.math_judge import (
    Judge,
    JudgeResult,
    JudgeTask,
    MathJudge,
    Reference,
    ReferenceCheck,
    Response,
    Verdict,
)
from curation.verify.programs.judge import ProgramJudge
from curation.verify.programs.problem import CodeProblem
from curation.verify.programs.tools import Runner
from flows.run.runner import Made, computing_on

AHEAD = 2
"""Shards sent per core: one in work, one waiting."""

HERE = "local"
"""Without an address, Ray joins this machine's last cluster, even a dead one."""

RETRIES = -1
"""Repetitions of a shard whose node died: unlimited."""


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


class SpreadJudge:
    """A verifier whose `submit` sends slow verdicts to the cluster."""

    def __init__(self, judge: Judge, ray: Any) -> None:
        self._judge, self._ray = judge, ray
        self.version = judge.version
        self._shared: Any = None
        self._submit = ray.remote(num_cpus=1, max_retries=-1)(_verdicts)

    def __enter__(self) -> Self:
        self._judge.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._judge.__exit__(kind, error, trace)

    def final_answer(self, response: Response) -> str | None:
        """Return a response's final answer."""
        return self._judge.final_answer(response)

    def judge(self, tasks: Iterable[JudgeTask]) -> Iterator[JudgeResult]:
        """Yield each task's verdicts in order."""
        return self._judge.judge(tasks)

    def check(self, references: Iterable[Reference]) -> Iterator[ReferenceCheck]:
        """Yield whether each (reference, language) is usable."""
        return self._judge.check(references)

    def compare_pairs(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Outcome]:
        """Yield each (reference, answer)'s outcome."""
        return self._judge.compare_pairs(pairs)

    def submit(self, task: JudgeTask, final_answers: Sequence[str | None] | None = None) -> Future[tuple[Verdict, ...]]:
        """Return a future with a task's verdicts, on responses or final answers."""
        found = [self.final_answer(one) for one in task.responses] if final_answers is None else list(final_answers)
        quick = self._judge.at_once(task, found) if isinstance(self._judge, MathJudge) else None
        if quick is not None or all(answer is None for answer in found):
            return self._judge.submit(task, found)
        if self._shared is None:
            self._shared = self._ray.put(self._judge)
        asked = self._submit.remote(_Shared(self._shared), replace(task, responses=()), found)
        answer: Future[tuple[Verdict, ...]] = Future()

        def finish(done: Future[Any]) -> None:
            if not answer.set_running_or_notify_cancel():
                return
            error = done.exception()
            if error is None:
                answer.set_result(done.result())
            else:
                answer.set_exception(getattr(error, "as_instanceof_cause", lambda: error)())

        asked.future().add_done_callback(finish)
        return answer


class _Shared:
    """A verifier in Ray's store, fetched once per worker."""

    def __init__(self, reference: Any) -> None:
        self.reference = reference

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Shared) and self.reference == other.reference

    def __hash__(self) -> int:
        return hash(self.reference)


@lru_cache(maxsize=4)
def _fetched(shared: _Shared) -> Judge:
    import ray

    judge: Judge = ray.get(shared.reference)
    return judge.__enter__()


def _verdicts(shared: _Shared, task: JudgeTask, final_answers: list[str | None]) -> tuple[Verdict, ...]:
    return _fetched(shared).submit(task, final_answers).result()


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
    return MathJudge(1, limit_s, memory_mb, response_format, judges)


@cache
def _runner(rung: str | None, allow_none: bool) -> Runner:
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
    """Return a readable attempt store, opened again after growth."""
    assert height >= 0
    return AttemptStore(Path(folder), key, create=False)
