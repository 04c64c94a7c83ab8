"""From the tables of the code line to what the sandbox judges, and attempts judged by it behind the math judge's face.

`problem_of` makes a `CodeProblem` of rows of `TEST` and `JUDGING`; `ProgramJudge` answers the calls that sampling and
the difficulty stages make of `curation.verify.judge.MathJudge`.

A final answer of a code attempt is its program in one fenced block that names the language (`fenced`), so that it can
be stored, compared as text and judged again. All attempts at a problem are judged by the same tests: those that
`draw_tests` draws by the seed and the problem's group, hence the same ones for both twins.

Invariants: a program in another language than the one asked for is no answer; programs have no answer class but 0
(accepted), so that equal failures never look like a rival answer; a failure of the sandbox is BROKEN and counts in no
pass rate.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self

from curation.records import Outcome, VerifierError
from curation.verify.judge import Judged, JudgeResult, JudgeTask, ReferenceCheck, Response
from curation.verify.programs.comparison import Comparison
from curation.verify.programs.extraction import CodeLang, extract_code
from curation.verify.programs.judge import VERSION as PROGRAMS
from curation.verify.programs.problem import (
    Checker,
    CheckerKind,
    CodeProblem,
    CodeTest,
    CodeVerdict,
    Submission,
    draw_tests,
)
from curation.verify.programs.running import run_tests
from curation.verify.programs.tools import Program, Toolbox, tools_folder
from curation.verify.sandbox import Sandbox

VERSION = PROGRAMS
"""Name and version of the verifier of programs; verdicts are filed under it."""

_TICKS = re.compile(r"`{3,}")

_SCRIPT = """\
import contextlib, io, runpy, sys
given, answer = sys.argv[1], sys.argv[2]
output = "/tmp/output"
with open(output, "wb") as file:
    file.write(sys.stdin.buffer.read())
sys.argv = ["checker_script.py", given, answer, output]
said = io.StringIO()
code = 0
with contextlib.redirect_stdout(said):
    try:
        runpy.run_path("checker_script.py", run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
lines = said.getvalue().split()
if code or not lines:
    sys.exit(f"the script ended with {code} and said {said.getvalue()[:100]!r}")
try:
    points = float(lines[-1])
except ValueError:
    sys.exit(f"the script said {said.getvalue()[:100]!r}, no number")
sys.exit(42 if points > 0 else 43)
"""
"""A checker script is given input, expected output and output as files, and says 1 or 0 as the last word."""


def fenced(lang: CodeLang, code: str) -> str:
    """A program as a final answer: one block that names its language, whose fence the code does not hold."""
    longest = max((len(found) for found in _TICKS.findall(code)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{lang.value}\n{code if code.endswith(chr(10)) else code + chr(10)}{fence}"


def program_answer(response: Response) -> str | None:
    """The final answer of a code attempt; None where the form is not kept."""
    found = extract_code(response.text if response.text is not None else response.answer or "")
    if found.lang is None or found.code is None:
        return None
    return fenced(found.lang, found.code)


def comparison_text(comparison: Comparison) -> str:
    """A comparison as the JSON object that `JUDGING` holds."""
    return json.dumps(dataclasses.asdict(comparison))


def comparison_of(text: str | None) -> Comparison:
    """The comparison that `JUDGING` holds; tokens, case included, where it names none."""
    return Comparison(case_sensitive=True) if text is None else Comparison(**json.loads(text))


def checker_text(checker: Checker) -> str:
    """A checker of one or more files as the JSON object that `JUDGING` holds, whatever bytes they have."""
    return json.dumps({"sources": dict(checker.sources), "main": list(checker.main), "args": list(checker.args)})


def checker_of(judging: Mapping[str, Any]) -> Checker | None:
    """The checker of a `JUDGING` row.

    A `script` is the source itself, a Python program that is given three files and prints 1 or 0; those of the kinds
    kattis and testlib are the JSON object of `checker_text`, or the source of one file.
    """
    text = judging["checker"]
    if text is None:
        return None
    if judging["checker_kind"] == "script":
        sources = {"checker_main.py": _SCRIPT, "checker_script.py": text}
        return Checker(CheckerKind.KATTIS, CodeLang.PYTHON, sources, ("checker_main.py",))
    lang = CodeLang(judging["checker_lang"])
    if not text.lstrip().startswith('{"sources"'):
        name = "checker.py" if lang is CodeLang.PYTHON else "checker.cpp"
        return Checker(CheckerKind(judging["checker_kind"]), lang, {name: text}, (name,))
    held = json.loads(text)
    return Checker(
        CheckerKind(judging["checker_kind"]), lang, held["sources"], tuple(held["main"]), tuple(held["args"])
    )


def validator_of(judging: Mapping[str, Any]) -> Checker | None:
    """The program of a `JUDGING` row that says whether an input is valid, where there is one."""
    if judging["validator"] is None:
        return None
    held = json.loads(judging["validator"])
    lang = CodeLang(judging["validator_lang"])
    return Checker(CheckerKind.KATTIS, lang, held["sources"], tuple(held["main"]), tuple(held["args"]))


def problem_of(
    name: str,
    tests: Iterable[tuple[str, str | None]],
    judging: Mapping[str, Any],
    time_s: float,
    memory_mb: int,
    factor: float = 1.0,
) -> CodeProblem:
    """A problem as the sandbox judges it.

    Args:
        tests: (input, expected output), in order; an output that is not known yet is empty.
        judging: its row of `JUDGING`.
        time_s, memory_mb: limits where that row names none.
        factor: multiplies the time limit.
    """
    made = (CodeTest(given.encode(), (wanted or "").encode(), str(i)) for i, (given, wanted) in enumerate(tests))
    return CodeProblem(
        name,
        tuple(made),
        cpu_s=(judging["time_limit_s"] or time_s) * factor,
        memory_mb=judging["memory_mb"] or memory_mb,
        comparison=comparison_of(judging["comparison"]),
        checker=checker_of(judging),
    )


class Runner:
    """A sandbox, its compiled programs, and threads that drive it. A context manager; started when first needed."""

    def __init__(self, workers: int | None = None, *, rung: str | None = None, allow_none: bool = False) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self.rung, self.allow_none = rung, allow_none
        self._box: Sandbox | None = None
        self._tools: Toolbox | None = None
        self.threads = ThreadPoolExecutor(self.workers, "programs")

    @property
    def tools(self) -> Toolbox:
        """The sandbox with its compilers. Raises `VerifierError` where no isolation is to be had."""
        if self._tools is None:
            self._box = Sandbox(self.workers, rung=self.rung, allow_none=self.allow_none, tools=tools_folder())
            self._box.__enter__()
            self._tools = Toolbox(self._box)
        return self._tools

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.threads.shutdown(wait=kind is None, cancel_futures=True)
        if self._box is not None:
            self._box.__exit__(kind, error, trace)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an attempt is judged by: the problem under its twin's limits, and the language asked for."""

    problem: CodeProblem
    lang: CodeLang


class ProgramJudge:
    """The verifier of programs, called as `MathJudge` is. A context manager.

    Args:
        find: from a problem's id to what its attempts are judged by.
        seed: draws the tests of each problem.
        tests: how many are drawn.
        runner: what runs the programs; one of its own where none is given.
    """

    version = VERSION

    def __init__(
        self,
        find: Callable[[str], Wanted],
        seed: int,
        workers: int | None = None,
        tests: int = 20,
        *,
        rung: str | None = None,
        allow_none: bool = False,
        runner: Runner | None = None,
    ) -> None:
        self.find, self.seed, self.tests = find, seed, tests
        self.runner = runner or Runner(workers, rung=rung, allow_none=allow_none)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.runner.__exit__(kind, error, trace)

    def final_answer(self, response: Response) -> str | None:
        """The final answer of a response."""
        return program_answer(response)

    def judge(self, tasks: Iterable[JudgeTask]) -> Iterator[JudgeResult]:
        """The verdicts on each task's responses, in order."""
        for task in tasks:
            yield JudgeResult(task.problem, self.submit(task).result())

    def submit(self, task: JudgeTask, found: Sequence[str | None] | None = None) -> Future[tuple[Judged, ...]]:
        """The verdicts on one task's responses, as a future.

        Args:
            found: the final answers of the responses where they are known; ``task.responses`` are not looked at then.
        """
        given = [program_answer(response) for response in task.responses] if found is None else list(found)
        result: Future[tuple[Judged, ...]] = Future()
        distinct = list(dict.fromkeys(answer for answer in given if answer is not None))
        if not distinct:
            result.set_result(tuple(_no_answer() for _ in given))
            return result
        wanted = self.find(task.problem)
        left = [len(distinct)]
        verdicts: dict[str, Judged] = {}

        def finish(answer: str, done: Future[Judged]) -> None:
            if result.done():
                return
            if done.cancelled():
                result.cancel()
                return
            error = done.exception()
            if error is not None:
                result.set_exception(error)
                return
            verdicts[answer] = done.result()
            if len(verdicts) == left[0]:
                result.set_result(tuple(_no_answer() if one is None else verdicts[one] for one in given))

        tools = self.runner.tools
        for answer in distinct:
            self.runner.threads.submit(self._judged, tools, wanted, answer).add_done_callback(partial(finish, answer))
        return result

    def _judged(self, tools: Toolbox, wanted: Wanted, answer: str) -> Judged:
        found = extract_code(answer)
        if found.lang is None or found.code is None:
            return Judged(Outcome.NO_ANSWER, answer, None, found.why)
        if found.lang is not wanted.lang:
            how = f"asked for {wanted.lang.value}, answered in {found.lang.value}"
            return Judged(Outcome.NO_ANSWER, answer, None, how)
        program = tools.prepare(Submission(found.lang, found.code))
        if not isinstance(program, Program):
            broken = program.verdict is CodeVerdict.BROKEN
            how = f"{program.verdict.value}: {_first_error(program.how)}"
            return Judged(Outcome.BROKEN if broken else Outcome.WRONG, answer, None, how)
        drawn = draw_tests(wanted.problem, self.seed, self.tests)
        failed = next(
            (run for run in run_tests(tools, wanted.problem, program, drawn) if run.verdict is not CodeVerdict.AC), None
        )
        if failed is None:
            return Judged(Outcome.CORRECT, answer, 0, f"AC on {len(drawn)} tests")
        outcome = Outcome.BROKEN if failed.verdict is CodeVerdict.BROKEN else Outcome.WRONG
        how = f"{failed.verdict.value} on test {failed.index}" + (f": {failed.how}" if failed.how else "")
        return Judged(outcome, answer, None, how)

    def check(self, references: Iterable[tuple[str, str]]) -> Iterator[ReferenceCheck]:
        """Code problems have no reference answer to check: their tests were, by agreement."""
        for _ in references:
            raise VerifierError("programs are judged by tests; a code problem has no reference answer to check")
        yield from ()

    def same(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Outcome]:
        """Two programs are the same answer where they are the same text."""
        for reference, answer in pairs:
            yield Outcome.CORRECT if reference == answer else Outcome.WRONG


def _first_error(log: str) -> str:
    """The compiler's first error, on one line."""
    lines = log.splitlines() or [""]
    return next((line for line in lines if "error" in line), lines[0])[:300]


def _no_answer() -> Judged:
    return Judged(Outcome.NO_ANSWER, None, None, "no program in a block that names its language")
