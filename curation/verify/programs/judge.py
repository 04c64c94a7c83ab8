"""Judges programs, and responses with a program.

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
from threading import Lock
from types import TracebackType
from typing import Self

from curation.records import Outcome, VerifierError
from curation.verify.math_judge import JudgeResult, JudgeTask, Reference, ReferenceCheck, Response, Verdict
from curation.verify.programs.extraction import extract_code, extract_program, fenced, find_programs
from curation.verify.programs.functions import run_function
from curation.verify.programs.problem import (
    TESTS_A_GROUP,
    CaseRun,
    CodeLang,
    CodeProblem,
    CodeVerdict,
    ProgramResult,
    Submission,
    Unready,
    draw_tests,
)
from curation.verify.programs.running import run_tests
from curation.verify.programs.toolchain import STANDARDS
from curation.verify.programs.tools import Program, Runner

VERSION = "programs-12"
"""The verifier's name and version, a key of verdicts; changes whenever a verdict could."""

Job = tuple[CodeProblem, Submission | Unready]
"""A problem, and a program for it or why there is none."""


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
        runner: Runner | None = None,
    ) -> None:
        self.find, self.seed, self.tests, self.every = find, seed, tests, every
        self.runner = runner or Runner(workers)

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
        """Return a task's future verdicts; ``final_answers`` replace its responses."""
        answers = (
            [program_answer(response) for response in task.responses] if final_answers is None else list(final_answers)
        )
        result: Future[tuple[Verdict, ...]] = Future()
        distinct = dict.fromkeys(answer for answer in answers if answer is not None)
        if not distinct:
            result.set_result(tuple(self._no_answer() for _ in answers))
            return result
        problem = self.find(task.problem)
        drawn = draw_tests(problem, self.seed if task.seed is None else task.seed, self.tests)
        self.runner.open()
        futures = {answer: self.runner.threads.submit(self._judged, problem, answer, drawn) for answer in distinct}
        lock = Lock()

        def finish(_: Future[Verdict]) -> None:
            with lock:
                if result.done() or not all(future.done() for future in futures.values()):
                    return
                if any(future.cancelled() for future in futures.values()):
                    result.cancel()
                elif errors := [error for future in futures.values() if (error := future.exception()) is not None]:
                    result.set_exception(errors[0])
                else:
                    verdicts = [self._no_answer() if one is None else futures[one].result() for one in answers]
                    result.set_result(tuple(verdicts))

        for future in futures.values():
            future.add_done_callback(finish)
        return result

    def _judged(self, problem: CodeProblem, answer: str, drawn: Sequence[int]) -> Verdict:
        result = run_program(self.runner, problem, extract_program(answer, problem.lang), drawn, every=self.every)
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
    """Return an attempt's final answer, its judged programs."""
    programs = find_programs(_text(response), finished=response.finish == "stop")
    answers = [fenced(program.lang, program.code) for program in programs if isinstance(program, Submission)]
    return "\n\n".join(answers) or None


def submission_in(response: Response, lang: CodeLang | None = None) -> Submission | Unready:
    """Return a response's program, read as attempts are."""
    answer = program_answer(response)
    if answer is not None:
        return extract_program(answer, lang)
    return extract_code(_text(response), finished=response.finish == "stop")


def _text(response: Response) -> str:
    return response.text if response.text is not None else response.answer or ""


def run_program(
    runner: Runner,
    problem: CodeProblem,
    submission: Submission | Unready,
    indices: Sequence[int],
    *,
    every: bool = False,
) -> ProgramResult:
    """Return a program's result on some tests, to the first failure unless ``every``."""
    runs = _runs(runner, problem, submission, indices, every)
    if isinstance(runs, Unready):
        return ProgramResult(runs.verdict, None, (), runs.how)
    failed = next((run for run in runs if run.verdict is not CodeVerdict.AC), None)
    if failed is None:
        return ProgramResult(CodeVerdict.AC, None, tuple(runs), runs[0].how if runs else "")
    return ProgramResult(failed.verdict, failed.index, tuple(runs), failed.how)


def _runs(
    runner: Runner, problem: CodeProblem, submission: Submission | Unready, indices: Sequence[int], every: bool
) -> list[CaseRun] | Unready:
    if isinstance(submission, Unready):
        return submission
    if problem.lang is not None and submission.lang is not problem.lang:
        how = f"asked for {problem.lang.value}, answered in {submission.lang.value}"
        return Unready(CodeVerdict.NA, how)
    if problem.refused is not None:
        return Unready(CodeVerdict.BROKEN, problem.refused)
    if not problem.test_count:
        return Unready(CodeVerdict.BROKEN, "the problem has no tests")
    if problem.function is not None:
        return run_function(runner, problem, submission, indices, every=every)
    program = runner.prepare(submission)
    if not isinstance(program, Program):
        return program
    runs = run_tests(runner, problem, program, indices, every=every)
    if program.standard not in {"", STANDARDS[0]} and runs:
        how = f"{runs[0].how}; compiled as {program.standard}".removeprefix("; ")
        runs[0] = dataclasses.replace(runs[0], how=how)
    return runs


def judge_programs(runner: Runner, jobs: Iterable[Job], *, every: bool = False) -> Iterator[ProgramResult]:
    """Yield programs' results on all tests, in order."""
    pending: deque[Future[ProgramResult]] = deque()
    try:
        for problem, submission in jobs:
            indices = range(problem.test_count)
            pending.append(runner.threads.submit(run_program, runner, problem, submission, indices, every=every))
            while len(pending) >= 4 * runner.workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()


def _share(result: ProgramResult) -> float:
    judged = [run for run in result.tests if run.verdict is not CodeVerdict.BROKEN]
    return sum(run.verdict is CodeVerdict.AC for run in judged) / len(judged) if judged else 0.0


def _first_error(log: str) -> str:
    lines = log.splitlines() or [""]
    return next((line for line in lines if "error" in line), lines[0])[:300]
