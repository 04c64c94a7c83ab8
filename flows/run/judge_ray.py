"""Compute slow verdicts on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import lru_cache
from types import TracebackType
from typing import Any, Self

from curation.records import Outcome
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
        """Yield each task's verdicts in order, computed locally."""
        return self._judge.judge(tasks)

    def check(self, references: Iterable[Reference]) -> Iterator[ReferenceCheck]:
        """Yield whether each (reference, language) is usable, computed locally."""
        return self._judge.check(references)

    def compare_pairs(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Outcome]:
        """Yield each (reference, answer)'s outcome, computed locally."""
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
        told: Future[tuple[Verdict, ...]] = Future()

        def finish(done: Future[Any]) -> None:
            if not told.set_running_or_notify_cancel():
                return
            error = done.exception()
            if error is None:
                told.set_result(done.result())
            else:
                told.set_exception(getattr(error, "as_instanceof_cause", lambda: error)())

        asked.future().add_done_callback(finish)
        return told


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
    """Return verdicts by this worker's verifier."""
    return _fetched(shared).submit(task, final_answers).result()
