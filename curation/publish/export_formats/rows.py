"""Rows of problems in each format, made by the templates of trainers.toml."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from curation.prompts.asked import Asked
from curation.scoring.record import MARK, record_of
from curation.verify.programs.files import row_of_problem
from curation.verify.programs.problem import CodeProblem

Row = dict[str, Any]

FORMATS: Mapping[str, Row] = tomllib.loads(Path(__file__).with_name("trainers.toml").read_text(encoding="utf-8"))
"""Tables of trainers.toml, by the names for ``goldilocks export --format``."""

MEASURED = ("pass_rate", "correct", "judged")
"""Columns that state a problem's difficulty."""


@dataclass(frozen=True, slots=True)
class ExportedProblem:
    """A set's row for all formats; ``program`` and ``tests`` are None for math."""

    row: Row
    number: int
    messages: list[dict[str, str]]
    program: CodeProblem | None
    tests: list[dict[str, str]] | None
    asked: Asked

    @property
    def answer(self) -> str:
        """Return the reference answer."""
        return str(self.row["answer"])

    @property
    def record(self) -> str:
        """Return the problem's record for `curation.scoring`, as JSON."""
        return record_of(self.row, self.program, self.asked)

    @property
    def about(self) -> Row:
        """Return the problem's ids, origin and measured columns."""
        return {name: self.row[name] for name in ("id", "group", "source", "lang", *MEASURED)}


def row_of(form: str, problem: ExportedProblem) -> Row:
    """Return a problem's row in a format."""
    return dict(_filled(FORMATS[form]["row"], problem))


def _filled(template: Row, problem: ExportedProblem) -> Iterator[tuple[str, Any]]:
    for name, content in template.items():
        value = content
        if isinstance(content, dict):
            value = dict(_filled(content, problem))
        elif content.startswith("$"):
            value = VALUES[content[1:]](problem)
        yield from value.items() if name == "*" else [(name, value)]


def _in_and_out(problem: ExportedProblem) -> str | None:
    if problem.tests is None:
        return None
    tests = {f"{side}s": [test[side] for test in problem.tests] for side in ("input", "output")}
    return as_json(tests)


def _judging(problem: ExportedProblem) -> str | None:
    if problem.program is None:
        return None
    table = row_of_problem(problem.program).items()
    return as_json({name: value for name, value in table if name not in ("id", "tests")})


VALUES: Mapping[str, Callable[[ExportedProblem], Any]] = {
    "messages": lambda problem: problem.messages,
    "messages_json": lambda problem: as_json(problem.messages),
    "question": lambda problem: problem.messages[-1]["content"],
    "statement": lambda problem: str(problem.row["statement"]),
    "answer": lambda problem: problem.answer if problem.tests is None else None,
    "label": lambda problem: problem.answer if problem.tests is None else "",
    "boxed": lambda problem: f"\\boxed{{{problem.answer}}}" if problem.tests is None else None,
    "truth": lambda problem: _in_and_out(problem) or problem.answer,
    "domain": lambda problem: "math" if problem.tests is None else "code",
    "number": lambda problem: problem.number,
    "record": lambda problem: problem.record,
    "about": lambda problem: problem.about,
    "columns": lambda problem: {"problem_group" if name == "group" else name: v for name, v in problem.about.items()},
    "info": lambda problem: as_json({**problem.about, MARK: problem.record}),
    "tests": _in_and_out,
    "judging": _judging,
}
"""What a template names with ``$``; null for a problem of the other domain."""

_MESSAGES = pl.List(pl.Struct(dict.fromkeys(("role", "content"), pl.String)))
TYPES: Mapping[str, Any] = {
    **dict.fromkeys(("prompt", "messages"), _MESSAGES),
    **dict.fromkeys(("judging", "solution", "tests", "answer", "source", "lang"), pl.String),
    "pass_rate": pl.Float64(),
    **dict.fromkeys(("correct", "judged"), pl.Int32),
}
"""Types of columns that rows may not determine."""


def tests_of(program: CodeProblem) -> list[dict[str, str]]:
    """Return inputs and expected outputs, JSON for functions."""
    if program.function is None:
        return [{"input": test.input.decode(), "output": test.output.decode()} for test in program.tests]
    return [
        {"input": "\n".join(map(as_json, call.args)), "output": as_json(call.expected)}
        for call in program.function.calls
    ]


def as_json(value: Any) -> str:
    """Return a value as JSON with unescaped Unicode."""
    return json.dumps(value, ensure_ascii=False)
