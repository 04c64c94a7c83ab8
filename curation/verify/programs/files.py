"""`goldilocks verify code`: a file of programs comes back with verdicts.

Problems are JSON lines with ``id`` and ``tests`` ([{"input", "output"}]), and perhaps ``time_limit_s``,
``memory_mb``, ``checker`` and ``function``. A checker is either the flags of Kattis's default output validator
("case_sensitive float_tolerance 1e-6") or a program: {"kind": "kattis" or "testlib", "lang": "python" or "cpp",
"sources": {name: text}, "main": [name], "args": []}. A function is {"entry", "calls": [{"args", "kwargs",
"expected"}]} or {"entry", "program", "setup"}. Outputs are compared by tokens and with their case; a checker of flags
takes Kattis's rule, where case does not matter unless they say so.

Submissions are JSON lines with ``problem``, ``lang`` (python or cpp), ``code`` and ``id``. Rows out, in the
submissions' order: ``id``, ``problem``, ``verdict``, ``first_failed`` (index of a test, or null), ``how`` and
``tests``: per test run its ``index``, ``verdict``, ``time_s`` (CPU), ``wall_s``, ``memory_mb`` and ``how``.

Invariants: one row out per row in; a program's runs end with its first failure unless every test is asked for; the
output appears under its name only when it is complete. The problems are held in memory, the submissions are not.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from curation.records import SourceError, VerifierError
from curation.store import replacing
from curation.verify.programs.comparison import Comparison, comparison_of_flags
from curation.verify.programs.extraction import LANGUAGES, CodeLang
from curation.verify.programs.judge import CodeJudge
from curation.verify.programs.problem import (
    CPU_S,
    MEMORY_MB,
    Checker,
    CheckerKind,
    CodeProblem,
    CodeTest,
    CodeVerdict,
    FunctionCall,
    FunctionTests,
    ProgramResult,
    Submission,
)


def verify_programs(
    problems: Path,
    submissions: Path,
    out: Path,
    judge: CodeJudge,
    progress: Callable[[int], None] | None = None,
    *,
    every: bool = False,
) -> dict[str, int]:
    """Judge every submission into ``out``; returns the number of submissions per verdict.

    ``progress`` is called with the number of submissions done so far. Raises `SourceError` on a line that is no
    problem or no submission, with its number.
    """
    known = read_problems(problems)
    counts = {verdict.value: 0 for verdict in CodeVerdict}
    waiting: deque[tuple[Any, Any]] = deque()

    def jobs() -> Iterator[tuple[CodeProblem, Submission]]:
        for number, row in _rows(submissions):
            problem, submission = _submission(row, known, f"{submissions}, line {number}")
            waiting.append((row.get("id"), row["problem"]))
            yield problem, submission

    with replacing(out) as file:
        for done, result in enumerate(judge.run(jobs(), every=every), 1):
            name, problem = waiting.popleft()
            counts[result.verdict.value] += 1
            file.write(json.dumps({"id": name, "problem": problem, **as_row(result)}).encode() + b"\n")
            if progress is not None:
                progress(done)
    return counts


def as_row(result: ProgramResult) -> dict[str, Any]:
    """A result as the columns of the output."""
    return {
        "verdict": result.verdict.value,
        "first_failed": result.first_failed,
        "how": result.how,
        "tests": [
            {
                "index": run.index,
                "verdict": run.verdict.value,
                "time_s": round(run.cpu_s, 4),
                "wall_s": round(run.wall_s, 4),
                "memory_mb": round(run.memory_mb, 1),
                "how": run.how,
            }
            for run in result.tests
        ],
    }


def read_problems(path: Path) -> dict[str, CodeProblem]:
    """The problems of a file by their id. Raises `SourceError` naming the first line that is none."""
    known: dict[str, CodeProblem] = {}
    for number, row in _rows(path):
        where = f"{path}, line {number}"
        problem = problem_of_row(row, where)
        if problem.id in known:
            raise SourceError(f"{where}: the id {problem.id!r} stands twice; give each problem its own")
        known[problem.id] = problem
    return known


def problem_of_row(row: Mapping[str, Any], where: str) -> CodeProblem:
    """One problem of the schema above. Raises `SourceError` beginning with ``where``."""
    name = row.get("id")
    if not isinstance(name, (str, int)):
        raise SourceError(f"{where}: id is {name!r}; it must be a string")
    try:
        tests = tuple(_test(test) for test in row.get("tests") or ())
        function = _function(row["function"]) if row.get("function") is not None else None
        given = row.get("checker")
        comparison = comparison_of_flags(given) if isinstance(given, str) else Comparison(case_sensitive=True)
        checker = _checker(given) if given is not None and not isinstance(given, str) else None
    except (KeyError, TypeError, ValueError, AttributeError, VerifierError) as error:
        raise SourceError(f"{where}: problem {name!r} is not as it should be: {error!r}") from error
    return CodeProblem(
        str(name),
        tests,
        cpu_s=_positive(row, "time_limit_s", CPU_S, where),
        memory_mb=int(_positive(row, "memory_mb", MEMORY_MB, where)),
        comparison=comparison,
        checker=checker,
        function=function,
    )


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        lines = path.open("rb")
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}") from error
    with lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise SourceError(f"{path}, line {number} is not JSON: {error}") from error
            if not isinstance(row, dict):
                raise SourceError(f"{path}, line {number} holds {type(row).__name__}, not an object")
            yield number, row


def _submission(row: Mapping[str, Any], known: Mapping[str, CodeProblem], where: str) -> tuple[CodeProblem, Submission]:
    problem = known.get(str(row.get("problem")))
    if problem is None:
        raise SourceError(f"{where}: there is no problem with the id {row.get('problem')!r}")
    lang = LANGUAGES.get(str(row.get("lang")).lower())
    if lang is None:
        raise SourceError(f"{where}: lang is {row.get('lang')!r}; it must be python or cpp")
    if not isinstance(row.get("code"), str):
        raise SourceError(f"{where}: code must be a string")
    return problem, Submission(lang, row["code"], str(row.get("id", "")))


def _positive(row: Mapping[str, Any], key: str, default: float, where: str) -> float:
    value = row.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
        raise SourceError(f"{where}: {key} is {value!r}; it must be a number above 0")
    return value


def _bytes(text: object) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"a test's input and output are strings, not {type(text).__name__}")
    return text.encode("utf-8", "surrogatepass")


def _test(test: Mapping[str, Any]) -> CodeTest:
    return CodeTest(_bytes(test["input"]), _bytes(test["output"]), str(test.get("name", "")))


def _checker(given: Mapping[str, Any]) -> Checker:
    sources = {str(name): str(text) for name, text in given["sources"].items()}
    main = tuple(given.get("main") or sources)
    missing = [name for name in main if name not in sources]
    if missing:
        raise ValueError(f"the checker's main file {missing[0]!r} is not among its sources")
    lang = CodeLang(LANGUAGES[str(given["lang"]).lower()])
    return Checker(CheckerKind(given["kind"]), lang, sources, main, tuple(map(str, given.get("args") or ())))


def _function(given: Mapping[str, Any]) -> FunctionTests:
    calls = tuple(
        FunctionCall(tuple(call.get("args") or ()), call["expected"], dict(call.get("kwargs") or {}))
        for call in given.get("calls") or ()
    )
    program = given.get("program")
    if (program is None) == (not calls):
        raise ValueError("a function has either calls or a program")
    return FunctionTests(given["entry"], calls, program, given.get("setup") or "", given.get("tolerance"))
