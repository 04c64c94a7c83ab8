"""Judging many programs in parallel, in the shape that the math judge has.

    with CodeJudge(workers=4) as judge:
        for result in judge.judge(tasks): …          # responses in, verdicts out, as MathJudge does
        for result in judge.run(jobs): …             # programs in, verdicts per test out

Each submission is a job for a thread, which drives one box; where fewer submissions wait than there are workers, the
tests of one are split among them. Results come in the order they were asked in and do not depend on how the work was
split: a program's runs end with its first failure in the problem's order.

Invariants: one verdict per response; all responses of a task are judged by the same tests; equal programs within a
task are judged once; BROKEN is never WRONG.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from threading import Lock
from types import TracebackType

from curation.records import Outcome
from curation.verify.judge import Judged, JudgeResult, Response
from curation.verify.programs.extraction import FoundCode, extract_code
from curation.verify.programs.functions import function_tests, run_function
from curation.verify.programs.problem import (
    TESTS_A_GROUP,
    CaseRun,
    CodeProblem,
    CodeVerdict,
    ProgramResult,
    Submission,
    draw_tests,
)
from curation.verify.programs.running import run_tests
from curation.verify.programs.tools import Program, Toolbox, Unready, tools_folder
from curation.verify.sandbox import Sandbox

VERSION = "programs-3"
"""Changes when a verdict could."""


@dataclass(frozen=True, slots=True)
class CodeTask:
    """One problem with the responses to judge, all by the same tests: those that ``seed`` draws.

    Example: ``CodeTask(problem, (Response("…```python\\nprint(1)\\n```", None),), seed=7)``
    """

    problem: CodeProblem
    responses: tuple[Response, ...]
    seed: int = 0


class _Race:
    """The first failure seen so far among the parts of one program: parts behind it are needless."""

    def __init__(self, every: bool) -> None:
        self._first: int | None = None
        self._every = every
        self._lock = Lock()

    def failed(self, part: int) -> None:
        with self._lock:
            self._first = part if self._first is None else min(self._first, part)

    def needless(self, part: int) -> bool:
        return not self._every and self._first is not None and self._first < part


_Part = list[CaseRun] | Unready
_Job = tuple[CodeProblem, Submission, Sequence[int] | None]


class CodeJudge:
    """The code verifier with its boxes. A context manager; raises `VerifierError` where no isolation is to be had.

    ``tests`` is how many tests are drawn for the responses of a task (None: all). ``rung`` and ``allow_none`` are the
    sandbox's.
    """

    version = VERSION

    def __init__(
        self,
        workers: int | None = None,
        *,
        tests: int | None = TESTS_A_GROUP,
        rung: str | None = None,
        allow_none: bool = False,
    ) -> None:
        self.workers = workers or os.cpu_count() or 1
        self.tests = tests
        self.box = Sandbox(self.workers, rung=rung, allow_none=allow_none, tools=tools_folder())
        self._tools = Toolbox(self.box)
        self._threads = ThreadPoolExecutor(self.workers, "judge")

    def __enter__(self) -> CodeJudge:
        self.box.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
        self.box.__exit__(kind, error, trace)

    @property
    def description(self) -> str:
        """What isolates the programs here."""
        return self.box.description

    def judge(self, tasks: Iterable[CodeTask]) -> Iterator[JudgeResult]:
        """The verdicts on each task's responses, in order: CORRECT, WRONG with the verdict in ``how``, NO_ANSWER …"""
        waiting: deque[tuple[CodeTask, list[FoundCode], list[Submission]]] = deque()

        def jobs() -> Iterator[_Job]:
            for task in tasks:
                found = [extract_code(response.text or response.answer or "") for response in task.responses]
                distinct = list(dict.fromkeys(map(_submission, filter(_has_code, found))))
                waiting.append((task, found, distinct))
                drawn = draw_tests(task.problem, task.seed, self.tests)
                for submission in distinct:
                    yield task.problem, submission, drawn

        results = self._through(jobs(), every=False)
        done: dict[Submission, ProgramResult] = {}
        while True:
            while waiting and len(done) == len(waiting[0][2]):
                task, found, _ = waiting.popleft()
                yield JudgeResult(task.problem.id, tuple(_judged(one, done) for one in found))
                done = {}
            result = next(results, None)
            if result is None:
                break
            done[waiting[0][2][len(done)]] = result
        while waiting:
            task, found, _ = waiting.popleft()
            yield JudgeResult(task.problem.id, tuple(_judged(one, done) for one in found))
            done = {}

    def run(
        self, jobs: Iterable[tuple[CodeProblem, Submission]], *, every: bool = False, seed: int | None = None
    ) -> Iterator[ProgramResult]:
        """The verdict on each program, in order, with its runs: up to the first failure unless ``every`` is asked for.

        All tests of the problem, or with a ``seed`` those that `draw_tests` draws.
        """
        return self._through(
            (
                (problem, submission, None if seed is None else draw_tests(problem, seed, self.tests))
                for problem, submission in jobs
            ),
            every=every,
        )

    def _through(self, jobs: Iterable[_Job], every: bool) -> Iterator[ProgramResult]:
        """Each job's result, in order, with a bounded number in flight."""
        flying: deque[list[Future[_Part]]] = deque()
        source = iter(jobs)
        ahead = list(islice(source, self.workers))
        parts = max(1, self.workers // len(ahead)) if ahead and len(ahead) < self.workers else 1
        try:
            for problem, submission, drawn in chain(ahead, source):
                flying.append(self._start(problem, submission, drawn, every, parts))
                while len(flying) >= 4 * self.workers:
                    yield _joined([future.result() for future in flying.popleft()], every)
            while flying:
                yield _joined([future.result() for future in flying.popleft()], every)
        finally:
            for futures in flying:
                for future in futures:
                    future.cancel()

    def _start(
        self, problem: CodeProblem, submission: Submission, drawn: Sequence[int] | None, every: bool, parts: int
    ) -> list[Future[_Part]]:
        total = len(problem.tests) if problem.function is None else function_tests(problem)
        indices = list(drawn if drawn is not None and problem.function is None else range(total))
        parts = max(1, min(parts, len(indices)))
        size = -(-len(indices) // parts)
        race = _Race(every)
        return [
            self._threads.submit(
                _run_part, self._tools, problem, submission, indices[part * size : (part + 1) * size], every, race, part
            )
            for part in range(parts)
        ]


def _run_part(
    tools: Toolbox,
    problem: CodeProblem,
    submission: Submission,
    indices: Sequence[int],
    every: bool,
    race: _Race,
    part: int,
) -> _Part:
    def cut() -> bool:
        return race.needless(part)

    if problem.refused is not None:
        return Unready(CodeVerdict.BROKEN, problem.refused)
    if problem.function is None and not problem.tests:
        return Unready(CodeVerdict.BROKEN, "the problem has no tests")
    if cut():
        return []
    if problem.function is not None:
        runs = run_function(tools, problem, submission, indices, every=every, cut=cut)
    else:
        program = tools.prepare(submission)
        if not isinstance(program, Program):
            return program
        runs = run_tests(tools, problem, program, indices, every=every, cut=cut)
    if isinstance(runs, list) and any(run.verdict is not CodeVerdict.AC for run in runs):
        race.failed(part)
    return runs


def _joined(parts: Sequence[_Part], every: bool) -> ProgramResult:
    runs: list[CaseRun] = []
    for part in parts:
        if isinstance(part, Unready):
            return ProgramResult(part.verdict, None, (), part.how)
        for run in part:
            runs.append(run)
            if run.verdict is not CodeVerdict.AC and not every:
                return ProgramResult(run.verdict, run.index, tuple(runs), run.how)
    failed = next((run for run in runs if run.verdict is not CodeVerdict.AC), None)
    if failed is None:
        return ProgramResult(CodeVerdict.AC, None, tuple(runs))
    return ProgramResult(failed.verdict, failed.index, tuple(runs), failed.how)


def _has_code(found: FoundCode) -> bool:
    return found.code is not None


def _submission(found: FoundCode) -> Submission:
    assert found.lang is not None
    assert found.code is not None
    return Submission(found.lang, found.code)


def _judged(found: FoundCode, done: dict[Submission, ProgramResult]) -> Judged:
    if found.code is None:
        return Judged(Outcome.NO_ANSWER, None, None, found.why)
    result = done[_submission(found)]
    where = "" if result.first_failed is None else f" on test {result.first_failed}"
    how = f"{result.verdict.value}{where}" + (f": {result.how}" if result.how else "")
    return Judged(result.outcome, found.code, 0 if result.verdict is CodeVerdict.AC else None, how)
