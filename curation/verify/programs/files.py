"""Judges a file of programs or of responses, for `goldilocks verify code`.

Problems are JSON lines with ``id`` and ``tests`` ([{"input", "output"}]), and optionally ``language`` (python or cpp),
``time_limit_s``, ``memory_mb``, ``processes``, ``comparison`` ({"case_sensitive", "space_change_sensitive", "absolute",
"relative"}), ``checker`` (Kattis flags, or {"kind": "kattis" or "testlib", "lang", "sources": {name: text}, "main":
[name], "args": []}) and ``function`` ({"entry", "calls": [{"args", "kwargs", "expected"}]} or {"entry", "program",
"setup"}). Case matters except with Kattis flags. Submissions have ``problem``, ``id``, and either ``lang`` and ``code``
or ``response`` and ``finish``.

Invariants: one row out per row in; only complete output appears.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from curation.records import SourceError, VerifierError
from curation.sources.files import numbered_jsonl
from curation.storage.stages import atomic_replace
from curation.thinking import THINK, ThinkingTags
from curation.verify.math_judge import Response
from curation.verify.programs.comparison import TOKENS, Comparison, comparison_of_flags
from curation.verify.programs.extraction import LANGUAGES
from curation.verify.programs.judge import Job, judge_programs, submission_in
from curation.verify.programs.problem import (
    CPU_S,
    MEMORY_MB,
    Checker,
    CheckerKind,
    CodeLang,
    CodeProblem,
    CodeTest,
    CodeVerdict,
    ProgramResult,
    Submission,
)
from curation.verify.programs.tables import function_text, unpacked_checker, unpacked_function
from curation.verify.programs.tools import Runner


def verify_programs(
    problems: Path,
    submissions: Path,
    out: Path,
    runner: Runner,
    progress: Callable[[int], None] | None = None,
    *,
    every: bool = False,
    tags: ThinkingTags = THINK,
) -> dict[str, int]:
    """Judge every submission into ``out``; return counts per verdict.

    Calls ``progress`` with 1 per submission. Raises `SourceError` on an invalid line.
    """
    by_id = read_problems(problems)
    counts = {verdict.value: 0 for verdict in CodeVerdict}
    waiting: deque[tuple[Any, Any]] = deque()

    def jobs() -> Iterator[Job]:
        for number, row in numbered_jsonl(submissions):
            job = _job(row, by_id, f"{submissions}, line {number}", tags)
            waiting.append((row.get("id"), row["problem"]))
            yield job

    with atomic_replace(out) as file:
        for result in judge_programs(runner, jobs(), every=every):
            name, problem = waiting.popleft()
            counts[result.verdict.value] += 1
            file.write(json.dumps({"id": name, "problem": problem, **as_row(result)}).encode() + b"\n")
            if progress is not None:
                progress(1)
    return counts


def as_row(result: ProgramResult) -> dict[str, Any]:
    """Return a result as an output row."""
    return {
        "verdict": result.verdict.value,
        "outcome": result.outcome.value,
        "first_failed": result.first_failed,
        "method": result.how,
        "tests": [
            {
                "index": run.index,
                "verdict": run.verdict.value,
                "time_s": round(run.cpu_s, 4),
                "wall_s": round(run.wall_s, 4),
                "memory_mb": round(run.memory_mb, 1),
                "method": run.how,
            }
            for run in result.tests
        ],
    }


def read_problems(path: Path) -> dict[str, CodeProblem]:
    """Return a file's problems by id; raise `SourceError` on an invalid line."""
    problems: dict[str, CodeProblem] = {}
    for number, row in numbered_jsonl(path):
        where = f"{path}, line {number}"
        problem = problem_of_row(row, where)
        if problem.id in problems:
            raise SourceError(f"{where}: the id {problem.id!r} is used twice; give each problem its own")
        problems[problem.id] = problem
    return problems


def problem_of_row(row: Mapping[str, Any], where: str) -> CodeProblem:
    """Return a row's problem; raise `SourceError` beginning with ``where``."""
    name = row.get("id")
    if not isinstance(name, (str, int)):
        raise SourceError(f"{where}: id is {name!r}; it must be a string")
    flags, comparison, packed = row.get("checker"), row.get("comparison"), row.get("function")
    try:
        if isinstance(flags, str) and comparison is not None:
            raise ValueError("give either a checker of flags or a comparison, not both")
        rule = TOKENS if comparison is None else Comparison(**comparison)
        return CodeProblem(
            str(name),
            () if packed is not None else tuple(_tests(row)),
            cpu_s=_positive(row, "time_limit_s") or CPU_S,
            memory_mb=int(_positive(row, "memory_mb") or MEMORY_MB),
            comparison=comparison_of_flags(flags) if isinstance(flags, str) else rule,
            checker=None if flags is None or isinstance(flags, str) else _checker(flags),
            function=None if packed is None else unpacked_function(packed),
            lang=None if row.get("language") is None else LANGUAGES[str(row["language"]).lower()],
            processes=row.get("processes") is True,
        )
    except (KeyError, TypeError, ValueError, AttributeError, VerifierError) as error:
        raise SourceError(f"{where}: problem {name!r} is invalid: {error!r}") from error


def _tests(row: Mapping[str, Any]) -> Iterator[CodeTest]:
    for index, test in enumerate(row.get("tests") or ()):
        if not isinstance(test["input"], str) or not isinstance(test["output"], str):
            raise TypeError("a test's input and output are strings")
        test_input, expected = (test[key].encode("utf-8", "surrogatepass") for key in ("input", "output"))
        yield CodeTest(test_input, expected, str(index))


def _checker(packed: Mapping[str, Any]) -> Checker:
    sources = {str(name): str(text) for name, text in packed["sources"].items()}
    lang = CodeLang(LANGUAGES[str(packed["lang"]).lower()])
    stated = {"sources": sources, "main": packed.get("main") or sources, "args": map(str, packed.get("args") or ())}
    return unpacked_checker(CheckerKind(packed["kind"]), lang, stated)


def row_of_problem(problem: CodeProblem) -> dict[str, Any]:
    """Return the row of `problem_of_row`."""
    row: dict[str, Any] = {
        "id": problem.id,
        "tests": [{"input": test.input.decode(), "output": test.output.decode()} for test in problem.tests],
        "time_limit_s": problem.cpu_s,
        "memory_mb": problem.memory_mb,
        "comparison": asdict(problem.comparison),
    }
    if problem.lang is not None:
        row["language"] = problem.lang.value
    if problem.processes:
        row["processes"] = True
    if problem.checker is not None:
        checker = problem.checker
        sources, main, args = dict(checker.sources), list(checker.main), list(checker.args)
        row["checker"] = {
            "kind": checker.kind.value,
            "lang": checker.lang.value,
            "sources": sources,
            "main": main,
            "args": args,
        }
    if problem.function is not None:
        row["function"] = json.loads(function_text(problem.function))
    return row


def _job(row: Mapping[str, Any], problems: Mapping[str, CodeProblem], where: str, tags: ThinkingTags) -> Job:
    problem = problems.get(str(row.get("problem")))
    if problem is None:
        raise SourceError(f"{where}: there is no problem with the id {row.get('problem')!r}")
    response = row.get("response")
    if response is not None:
        if not isinstance(response, str) or "code" in row:
            raise SourceError(f"{where}: give either response, a string, or lang and code")
        return problem, submission_in(Response(tags.house_form(response), None, row.get("finish")), problem.lang)
    lang = LANGUAGES.get(str(row.get("lang")).lower())
    if lang is None:
        raise SourceError(f"{where}: lang is {row.get('lang')!r}; it must be python or cpp")
    if not isinstance(row.get("code"), str):
        raise SourceError(f"{where}: code must be a string")
    return problem, Submission(lang, row["code"], str(row.get("id", "")))


def _positive(row: Mapping[str, Any], key: str) -> float | None:
    value = row.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
        raise ValueError(f"{key} is {value!r}; it must be a number above 0")
    return value
