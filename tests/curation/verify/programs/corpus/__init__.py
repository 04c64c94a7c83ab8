"""Responses to small problems of every kind with the outcome that each has, whoever judges it.

``problems.jsonl`` and ``responses.jsonl`` are in the schemas of `goldilocks verify code`; a response's ``outcome`` is
what every route must say of it. `write_set` publishes the problems as a curated set has them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from curation.export import CURATED
from curation.records import JUDGING, TEST
from curation.verify.programs.files import read_problems
from curation.verify.programs.problem import CodeProblem
from curation.verify.programs.tables import checker_text, comparison_text, function_text

HERE = Path(__file__).parent
PROBLEMS, RESPONSES = HERE / "problems.jsonl", HERE / "responses.jsonl"


def responses() -> list[dict[str, Any]]:
    """Return the responses, one row each."""
    return [json.loads(line) for line in RESPONSES.read_text().splitlines()]


def write_set(folder: Path) -> Path:
    """Write the problems with a language as a curated set: ``data/``, ``tests/`` and ``judging/``."""
    problems = {name: problem for name, problem in read_problems(PROBLEMS).items() if problem.lang is not None}
    nothing = dict.fromkeys(CURATED)
    data = [
        {
            **nothing,
            "id": name,
            "group": name,
            "domain": "code",
            "statement": f"Solve {name}.",
            "lang": "en",
            "source": "corpus",
            "pass_rate": 0.5,
            "meta": json.dumps({"language": str(problem.lang)}),
        }
        for name, problem in problems.items()
    ]
    tests = [
        {"problem": name, "index": index, "input": test.input.decode(), "output": test.output.decode(), "origin": "x"}
        for name, problem in problems.items()
        for index, test in enumerate(problem.tests)
    ]
    judging = [judging_row(name, problem) for name, problem in problems.items()]
    for part, rows, schema in (("data", data, CURATED), ("tests", tests, TEST), ("judging", judging, JUDGING)):
        (folder / part).mkdir(parents=True)
        pl.DataFrame(rows, schema=schema).write_parquet(folder / part / "00000.parquet")
    return folder


def judging_row(name: str, problem: CodeProblem) -> dict[str, Any]:
    """Return the problem's row of `JUDGING`."""
    checker, function = problem.checker, problem.function
    return {
        **dict.fromkeys(JUDGING),
        "problem": name,
        "time_limit_s": problem.cpu_s,
        "memory_mb": problem.memory_mb,
        "comparison": comparison_text(problem.comparison),
        "checker": checker_text(checker) if checker is not None else None,
        "checker_lang": checker.lang.value if checker is not None else None,
        "checker_kind": checker.kind.value if checker is not None else None,
        "function": function_text(function) if function is not None else None,
    }
