"""Judges programs, and responses with a program.

    with Runner(workers=4) as runner:
        for result in judge_programs(runner, jobs): …

    with ProgramJudge(problems.__getitem__, seed=7) as judge:
        for result in judge.judge(tasks): …

Invariants: one verdict per response and result per program, in order; attempts of a task share their tests; only
accepted programs have an answer class, 0; BROKEN is never WRONG.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import chain, islice
from threading import Lock
from types import TracebackType
from typing import Self

from curation.records import Outcome, VerifierError
from curation.verify.math_judge import JudgeResult, JudgeTask, Reference, ReferenceCheck, Response, Verdict
from curation.verify.programs.extraction import (
    CodeLang,
    FoundCode,
    extract_code,
    extract_program,
    fenced,
    find_programs,
)
from curation.verify.programs.functions import run_function
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
from curation.verify.programs.toolchain import STANDARDS
from curation.verify.programs.tools import Program, Runner, Toolbox, Unready

VERSION = "programs-12"
"""Name and version of the verifier of programs; verdicts are filed under it. Changes when a verdict could."""

Job = tuple[CodeProblem, Submission | Unready]
"""A program, or why there is none, with the problem that it answers."""
_Part = list[CaseRun] | Unready


class ProgramJudge:
    """The verifier of programs, used like `MathJudge`.

    Args:
        find: returns a problem by id.
        seed: for tasks without one.
        tests: number drawn; None for all.
        every: run all, for the share passed.
    """

    version = VERSION

    def __init__(
        self,
        find: Callable[[str], CodeProblem],
        seed: int,
        workers: int | None = None,
        tests: int | None = TESTS_A_GROUP,
        *,
        every: bool = False,
        rung: str | None = None,
        allow_none: bool = False,
        runner: Runner | None = None,
    ) -> None:
        self.find, self.seed, self.tests, self.every = find, seed, tests, every
        self.runner = runner or Runner(workers, rung=rung, allow_none=allow_none)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.runner.__exit__(kind, error, trace)

    def final_answer(self, response: Response) -> str | None:
        """Return a response's final answer."""
        return program_answer(response)

    def judge(self, tasks: Iterable[JudgeTask]) -> Iterator[JudgeResult]:
        """Yield each task's verdicts, in order."""
        for task in tasks:
            yield JudgeResult(task.problem, self.submit(task).result())

    def submit(self, task: JudgeTask, final_answers: Sequence[str | None] | None = None) -> Future[tuple[Verdict, ...]]:
        """Return a task's future verdicts.

        Args:
            final_answers: replace ``task.responses``.
        """
        answers = (
            [program_answer(response) for response in task.responses] if final_answers is None else list(final_answers)
        )
        result: Future[tuple[Verdict, ...]] = Future()
        distinct = list(dict.fromkeys(answer for answer in answers if answer is not None))
        if not distinct:
            result.set_result(tuple(self._no_answer() for _ in answers))
            return result
        problem = self.find(task.problem)
        drawn = draw_tests(problem, self.seed if task.seed is None else task.seed, self.tests)
        lock = Lock()
        verdicts: dict[str, Verdict] = {}

        def finish(answer: str, finished: Future[Verdict]) -> None:
            with lock:
                if result.done():
                    return
                if finished.cancelled():
                    result.cancel()
                    return
                error = finished.exception()
                if error is not None:
                    result.set_exception(error)
                    return
                verdicts[answer] = finished.result()
                if len(verdicts) == len(distinct):
                    result.set_result(
                        tuple(
                            self._no_answer() if final_answer is None else verdicts[final_answer]
                            for final_answer in answers
                        )
                    )

        tools = self.runner.tools
        for answer in distinct:
            future = self.runner.threads.submit(self._judged, tools, problem, answer, drawn)
            future.add_done_callback(partial(finish, answer))
        return result

    def _judged(self, tools: Toolbox, problem: CodeProblem, answer: str, drawn: Sequence[int]) -> Verdict:
        runs = run_program(tools, problem, submission_of(answer, problem.lang), drawn, every=self.every)
        result = _joined([runs], self.every)
        passed = _share(result) if self.every else None
        if result.verdict is CodeVerdict.AC:
            return Verdict(
                Outcome.CORRECT,
                answer,
                0,
                f"AC on {len(drawn)} tests" + (f"; {result.how}" if result.how else ""),
                passed,
            )
        if result.verdict is CodeVerdict.NA:
            return Verdict(Outcome.NO_ANSWER, answer, None, result.how, passed)
        if result.first_failed is None:
            how = f"{result.verdict.value}: {_first_error(result.how)}"
        else:
            how = f"{result.verdict.value} on test {result.first_failed}" + (f": {result.how}" if result.how else "")
        return Verdict(result.outcome, answer, None, how, passed)

    def _no_answer(self) -> Verdict:
        how = "no program in a code block"
        return Verdict(Outcome.NO_ANSWER, None, None, how, 0.0 if self.every else None)

    def check(self, references: Iterable[Reference]) -> Iterator[ReferenceCheck]:
        """Raise `VerifierError`: code problems have no reference answer."""
        for _ in references:
            raise VerifierError("programs are judged by tests; a code problem has no reference answer to check")
        yield from ()

    def compare_pairs(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Outcome]:
        """Yield CORRECT for programs with equal text."""
        for reference, answer in pairs:
            yield Outcome.CORRECT if reference == answer else Outcome.WRONG


def program_answer(response: Response) -> str | None:
    """Return an attempt's final answer; None without a judged program."""
    found = find_programs(_text(response), finished=response.finish == "stop")
    answers = [fenced(one.lang, one.code) for one in found if one.lang is not None and one.code is not None]
    return "\n\n".join(answers) or None


def submission_of(answer: str, wanted: CodeLang | None = None) -> Submission | Unready:
    """Return a final answer's program in this language, or why there is none."""
    return _as_submission(extract_program(answer, wanted))


def submission_in(response: Response, wanted: CodeLang | None = None) -> Submission | Unready:
    """Return a response's program, read as attempts are."""
    answer = program_answer(response)
    if answer is not None:
        return submission_of(answer, wanted)
    return _as_submission(extract_code(_text(response), finished=response.finish == "stop"))


def _text(response: Response) -> str:
    return response.text if response.text is not None else response.answer or ""


def _as_submission(found: FoundCode) -> Submission | Unready:
    if found.lang is None or found.code is None:
        return Unready(CodeVerdict.NA, found.why)
    return Submission(found.lang, found.code)


def run_program(
    tools: Toolbox,
    problem: CodeProblem,
    submission: Submission | Unready,
    indices: Sequence[int],
    *,
    every: bool = False,
    cut: Callable[[], bool] = bool,
) -> list[CaseRun] | Unready:
    """Run a program to the first failure unless ``every``; ``cut`` may end it."""
    if isinstance(submission, Unready):
        return submission
    if problem.lang is not None and submission.lang is not problem.lang:
        how = f"asked for {problem.lang.value}, answered in {submission.lang.value}"
        return Unready(CodeVerdict.NA, how)
    if problem.refused is not None:
        return Unready(CodeVerdict.BROKEN, problem.refused)
    if not problem.test_count:
        return Unready(CodeVerdict.BROKEN, "the problem has no tests")
    if cut():
        return []
    if problem.function is not None:
        return run_function(tools, problem, submission, indices, every=every, cut=cut)
    program = tools.prepare(submission)
    if not isinstance(program, Program):
        return program
    runs = run_tests(tools, problem, program, indices, every=every, cut=cut)
    if program.standard not in {"", STANDARDS[0]} and runs:
        how = f"{runs[0].how}; compiled as {program.standard}".removeprefix("; ")
        runs[0] = dataclasses.replace(runs[0], how=how)
    return runs


def judge_programs(runner: Runner, jobs: Iterable[Job], *, every: bool = False) -> Iterator[ProgramResult]:
    """Yield programs' results on all tests, in order."""
    pending: deque[list[Future[_Part]]] = deque()
    source = iter(jobs)
    ahead = list(islice(source, runner.workers))
    parts = max(1, runner.workers // len(ahead)) if ahead and len(ahead) < runner.workers else 1
    try:
        for problem, submission in chain(ahead, source):
            pending.append(_start(runner, problem, submission, every, parts))
            while len(pending) >= 4 * runner.workers:
                yield _joined([future.result() for future in pending.popleft()], every)
        while pending:
            yield _joined([future.result() for future in pending.popleft()], every)
    finally:
        for futures in pending:
            for future in futures:
                future.cancel()


class _Race:
    """A program's first failed part, which makes later ones needless."""

    def __init__(self, every: bool) -> None:
        self._first: int | None = None
        self._every = every
        self._lock = Lock()

    def failed(self, part: int) -> None:
        with self._lock:
            self._first = part if self._first is None else min(self._first, part)

    def needless(self, part: int) -> bool:
        return not self._every and self._first is not None and self._first < part


def _start(
    runner: Runner, problem: CodeProblem, submission: Submission | Unready, every: bool, parts: int
) -> list[Future[_Part]]:
    total = problem.test_count
    parts = max(1, min(parts, total))
    size = -(-total // parts)
    race = _Race(every)
    tools = runner.tools

    def run_part(part: int) -> _Part:
        indices = range(total)[part * size : (part + 1) * size]
        runs = run_program(tools, problem, submission, indices, every=every, cut=lambda: race.needless(part))
        if isinstance(runs, list) and any(run.verdict is not CodeVerdict.AC for run in runs):
            race.failed(part)
        return runs

    return [runner.threads.submit(run_part, part) for part in range(parts)]


def _joined(parts: Sequence[_Part], every: bool) -> ProgramResult:
    runs: list[CaseRun] = []
    for part in parts:
        if isinstance(part, Unready):
            return ProgramResult(part.verdict, None, (), part.how)
        for run in part:
            runs.append(run)
            if run.verdict is not CodeVerdict.AC and not every:
                return ProgramResult(run.verdict, run.index, tuple(runs), run.how)
    first_failure = next((run for run in runs if run.verdict is not CodeVerdict.AC), None)
    if first_failure is None:
        return ProgramResult(CodeVerdict.AC, None, tuple(runs), runs[0].how if runs else "")
    return ProgramResult(first_failure.verdict, first_failure.index, tuple(runs), first_failure.how)


def _share(result: ProgramResult) -> float:
    """Return the share of judged tests passed."""
    judged = [run for run in result.tests if run.verdict is not CodeVerdict.BROKEN]
    return sum(run.verdict is CodeVerdict.AC for run in judged) / len(judged) if judged else 0.0


def _first_error(log: str) -> str:
    """Return the compiler's first error line."""
    lines = log.splitlines() or [""]
    return next((line for line in lines if "error" in line), lines[0])[:300]
