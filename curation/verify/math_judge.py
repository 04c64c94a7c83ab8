"""Judges responses to math problems.

Answer class 0 equals the reference, others get 1, 2, … by first appearance; failed comparisons have none.

Invariants: one verdict per response, in order; TIMEOUT and BROKEN are never WRONG.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import astuple, dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from curation.plugins import PluginRef
from curation.records import Outcome
from curation.response_formats import ANY
from curation.verify import answers
from curation.verify.extraction import extract_answer, read_answer
from curation.verify.judge_worker import DOUBTFUL, Judged, judge_quickly
from curation.verify.worker_pool import JobReply, WorkerLimits, WorkerPool

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Response:
    """An attempt: its text, or a recorded final answer; ``finish`` as in `ATTEMPT`."""

    text: str | None
    answer: str | None
    finish: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeTask:
    """One problem with the responses to judge.

    Right answers equal ``reference``, one of ``admissible``, or ``letter``, the original option. ``seed`` draws a code
    problem's tests; ``scorer`` is as in `generator_scores.scorer_of`.
    """

    problem: str
    reference: str
    lang: str
    responses: tuple[Response, ...]
    letter: str | None = None
    seed: int | None = None
    statement: str | None = None
    admissible: tuple[str, ...] = ()
    scorer: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A response's verdict, the ``method`` that decided or failed, and the share ``passed`` if all tests were run."""

    outcome: Outcome
    answer: str | None
    answer_class: int | None
    method: str
    passed: float | None = None
    milliseconds: float | None = field(default=None, compare=False)

    @property
    def is_doubtful(self) -> bool:
        """Return whether a person should check this refusal."""
        return self.method.endswith(DOUBTFUL)


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """The verdicts on a problem's responses, in order."""

    problem: str
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class ReferenceCheck:
    """Whether a reference is usable; ``failure`` if the verifier failed."""

    usable: bool
    failure: Outcome | None
    reason: str


Reference = tuple[str, str] | tuple[str, str, str | None] | tuple[str, str, str | None, str | None]
"""A reference and its language, with the problem's statement and scorer if known."""


class Judge(Protocol):
    """A verifier, as a context manager."""

    version: str

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def final_answer(self, response: Response) -> str | None:
        """Return a response's judged text, if any."""
        ...

    def judge(self, tasks: Iterable[JudgeTask]) -> Iterator[JudgeResult]:
        """Yield each task's verdicts, in order."""
        ...

    def submit(self, task: JudgeTask, final_answers: Sequence[str | None] | None = None) -> Future[tuple[Verdict, ...]]:
        """Return the future verdicts on responses or final answers."""
        ...

    def check(self, references: Iterable[Reference]) -> Iterator[ReferenceCheck]:
        """Yield whether each reference is usable."""
        ...

    def compare_pairs(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Outcome]:
        """Yield the outcome of each (reference, answer)."""
        ...


class MathJudge:
    """The math verifier; workers start on first use.

    Args:
        judges: the user's own.
    """

    def __init__(
        self,
        workers: int | None = None,
        limit_s: float = 2.0,
        memory_mb: int = 2048,
        response_format: str = ANY,
        judges: Sequence[PluginRef] = (),
    ) -> None:
        self.response_format, self.judges = response_format, tuple(judges)
        self.version = " ".join([answers.VERSION, *(judge.label for judge in judges)])
        self._is_quick = not judges
        self.limits = WorkerLimits(limit_s, memory_mb)
        self._pool = WorkerPool("curation.verify.judge_worker:run", workers or os.cpu_count() or 1, self.limits)
        self._job = {"judges": [astuple(judge) for judge in judges]}
        self._open = False

    def __enter__(self) -> Self:
        return self

    def final_answer(self, response: Response) -> str | None:
        """Return a response's final answer."""
        return final_answer(response, self.response_format)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.close()

    def judge(self, tasks: Iterable[JudgeTask]) -> Iterator[JudgeResult]:
        """Yield each task's verdicts, in order."""
        for problem, verdicts in self._in_order((task.problem, self.submit(task)) for task in tasks):
            yield JudgeResult(problem, verdicts)

    def submit(self, task: JudgeTask, final_answers: Sequence[str | None] | None = None) -> Future[tuple[Verdict, ...]]:
        """Return a task's future verdicts; ``final_answers`` replace its responses."""
        extracted_answers = (
            [self.final_answer(response) for response in task.responses]
            if final_answers is None
            else list(final_answers)
        )
        result: Future[tuple[Verdict, ...]] = Future()
        if (quick := self.at_once(task, extracted_answers)) is not None:
            result.set_result(quick)
            return result
        distinct = list(dict.fromkeys(answer for answer in extracted_answers if answer is not None))

        def finish(reply: Future[JobReply]) -> None:
            if reply.cancelled() or not result.set_running_or_notify_cancel():
                result.cancel()
            elif (error := reply.exception()) is not None:
                result.set_exception(error)
            elif (failure := reply.result().failure) is not None:
                why = reply.result().reason
                failed = {answer: Verdict(failure, answer, None, why) for answer in distinct}
                result.set_result(_in_order_of(extracted_answers, failed))
            else:
                result.set_result(_in_order_of(extracted_answers, _as_verdicts(reply.result().value["verdicts"])))

        self._start().submit(self._judge_job(task, distinct)).add_done_callback(finish)
        return result

    def at_once(self, task: JudgeTask, final_answers: Sequence[str | None]) -> tuple[Verdict, ...] | None:
        """Return the verdicts if no worker is needed."""
        distinct = list(dict.fromkeys(answer for answer in final_answers if answer is not None))
        judged: dict[str, Judged] | None = {}
        if distinct:
            is_quick = self._is_quick and task.scorer is None
            references = (task.reference, *task.admissible)
            judged = judge_quickly(references, task.letter, distinct, task.lang, task.statement) if is_quick else None
        return None if judged is None else _in_order_of(final_answers, _as_verdicts(judged))

    def _judge_job(self, task: JudgeTask, distinct: list[str]) -> dict[str, Any]:
        return {
            "do": "judge",
            "reference": task.reference,
            "lang": task.lang,
            "answers": distinct,
            "letter": task.letter,
            "admissible": list(task.admissible),
            "statement": task.statement,
            "scorer": task.scorer,
            **self._job,
        }

    def _start(self) -> WorkerPool:
        if not self._open:
            self._pool.__enter__()
            self._open = True
        return self._pool

    def check(self, references: Iterable[Reference]) -> Iterator[ReferenceCheck]:
        """Yield whether each reference is usable."""

        def started() -> Iterator[tuple[None, Future[Any]]]:
            for reference, lang, *rest in references:
                statement, scorer = (*rest, None, None)[:2]
                if self._is_quick and scorer is None and answers.is_plain(reference, lang=lang):
                    usable: Future[ReferenceCheck] = Future()
                    usable.set_result(ReferenceCheck(True, None, ""))
                    yield None, usable
                else:
                    request = {"reference": reference, "lang": lang, "statement": statement, "scorer": scorer}
                    yield None, self._start().submit({"do": "check", **request, **self._job})

        for _, reply in self._in_order(started()):
            yield reply if isinstance(reply, ReferenceCheck) else _reference_check(reply)

    def compare_pairs(self, pairs: Iterable[tuple[str, str]], *, lang: str = "en") -> Iterator[Outcome]:
        """Yield the outcome of each (reference, answer)."""
        started = ((None, self.submit(JudgeTask("", reference, lang, ()), [answer])) for reference, answer in pairs)
        for _, (verdict,) in self._in_order(started):
            yield verdict.outcome

    def _in_order(self, items: Iterable[tuple[Item, Future[Any]]]) -> Iterator[tuple[Item, Any]]:
        """Yield items with results; few jobs are submitted ahead, to bound memory."""
        in_flight: deque[tuple[Item, Future[Any], bool]] = deque()
        busy, capacity = 0, 4 * self._pool.workers
        try:
            for item, future in items:
                in_flight.append((item, future, not future.done()))
                busy += in_flight[-1][2]
                while in_flight and (in_flight[0][1].done() or busy >= capacity or len(in_flight) >= 256 * capacity):
                    first, future, was_busy = in_flight.popleft()
                    busy -= was_busy
                    yield first, future.result()
            while in_flight:
                first, future, _ = in_flight.popleft()
                yield first, future.result()
        finally:
            for _, future, _ in in_flight:
                future.cancel()


def _reference_check(reply: JobReply) -> ReferenceCheck:
    if reply.failure is not None:
        return ReferenceCheck(False, reply.failure, reply.reason)
    failed, defect = reply.value["failed"], reply.value["why"]
    return ReferenceCheck(defect is None, Outcome(failed) if failed else None, defect or "")


def final_answer(response: Response, response_format: str = ANY) -> str | None:
    """Return a response's final or recorded answer."""
    if response.text is None:
        return read_answer(response.answer, response_format) if response.answer is not None else None
    extracted = extract_answer(response.text, response_format, response.finish)
    return extracted.answer if extracted is not None else None


def _as_verdicts(judged: Mapping[str, Judged]) -> dict[str, Verdict]:
    return {
        answer: Verdict(Outcome(outcome), answer, group, method, milliseconds=milliseconds)
        for answer, (outcome, method, group, milliseconds) in judged.items()
    }


def _in_order_of(answers: Iterable[str | None], verdicts: Mapping[str, Verdict]) -> tuple[Verdict, ...]:
    return tuple(_NO_ANSWER if answer is None else verdicts[answer] for answer in answers)


_NO_ANSWER = Verdict(Outcome.NO_ANSWER, None, None, "no final answer")
