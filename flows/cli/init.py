"""`goldilocks init`: writes a recipe for a file of problems."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from os.path import relpath
from pathlib import Path
from typing import Any

from curation.config.sources import CodeColumns
from curation.records import ConfigError, SourceError
from curation.sources.code_problems import code_tables
from curation.sources.files import kind_of, raw_rows
from curation.sources.rows import BadRowError
from curation.storage.stages import atomic_write

ROWS = 200
"""Rows that are read."""

STATEMENTS = ("problem", "question", "statement", "prompt", "instruction", "input", "query", "text")
ANSWERS = ("answer", "final_answer", "expected_answer", "ground_truth", "gold", "target", "label", "solution", "output")
LANGUAGES = ("lang", "language")
CHOICES = ("choices", "options")
IDS = ("id", "uid", "uuid", "problem_id", "task_id", "question_id", "idx")
TESTS = ("test_list", "input_output", "public_test_cases", "private_test_cases", "test_cases", "tests", "test")
TEST_NAMES = {"input_output": {"inputs": "inputs", "outputs": "outputs"}}  # as in APPS
SOLUTIONS = ("code", "canonical_solution", "solutions", "solution")
STARTERS = ("starter_code", "test_setup_code")
MARKS = {"hash": "####", "boxed": "\\boxed{"}
"""Marks of a final answer, by name in a recipe."""

RECIPE = """\
# Made by `goldilocks init`: check the columns, then name the model whose problems these are.
name = {name}
{flow}
[[sources]]
path = {path}
columns = {columns}
{code}
[models.student]
kind = {kind}
model = {model}
{revision}
[stage1] # keep what the student solves sometimes: neither never nor always
model = "student"
"""
FEW_TESTS = "\n[code]\nmin_tests = {} # a problem with fewer is dropped\n"
VLLM = '"vllm" # on a GPU of this machine; "endpoint" with `urls` for servers'
TOY = '"torch" # on the CPU, for a try\ndecoding = { max_tokens = 112 }'
REVISION = 'revision = "main" # better: the commit that you mean\n'


def write_recipe(rows: Path, out: Path, model: str) -> list[str]:
    """Write a recipe for a file; return lines on its columns and the next command.

    Raises:
        ConfigError: the recipe exists, or no column can be the statement or the answer.
        SourceError: the file cannot be read.
    """
    if out.exists():
        raise ConfigError(f"{out} exists already; give another place with --out.")
    first = [raw.row for raw in itertools.islice(raw_rows(rows, kind_of(rows)), ROWS) if raw.row is not None]
    try:
        code, num_tests = guessed_code(first) or (None, 0)
    except BadRowError as error:
        raise SourceError(f"{rows}: {error} Write `code` by hand: docs/how-to/sources.md.") from error
    columns: dict[str, Any] = {**guessed_columns(first, rows, with_answer=code is None)}
    if (own := _first(IDS, list(dict.fromkeys(name for row in first for name in row)))) is not None:
        columns["meta"] = [own]
    path = relpath(rows, out.parent) if not rows.is_absolute() else str(rows)
    text = RECIPE.format(
        name=json.dumps(re.sub(r"[^a-z0-9]+", "-", rows.name.partition(".")[0].lower()).strip("-") or "problems"),
        path=json.dumps(path),
        flow="" if code is None else 'flow = "curate-code"\n',
        columns=_inline(columns),
        code="" if code is None else f"code = {_inline(code)}\n{FEW_TESTS.format(num_tests) if num_tests < 5 else ''}",
        kind=TOY if model == "embedded" else VLLM,
        model=json.dumps(model),
        revision="" if Path(model).is_dir() or model == "embedded" else REVISION,
    )
    atomic_write(out, text)
    named = {
        field: f"{value['path']} ({MARKS[value['take']]})" if isinstance(value, dict) else "".join(value)
        for field, value in columns.items()
    }
    for field, value in (code or {}).items():
        named[field] = value if isinstance(value, str) else " and ".join(part["path"] for part in value)
    found = ", ".join(f"{field} = {value}" for field, value in named.items())
    return [f"{out}: {found}, from the first {len(first):,} rows", f"next: goldilocks run {out} --dry"]


def guessed_code(rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], int] | None:
    """Return the columns of tests, solutions, function and starter, and the usual number of tests; None without tests.

    Raises:
        BadRowError: there are no answers either, and the tests have an unexpected form.
    """
    names = list(dict.fromkeys(name for row in rows for name in row if row[name]))
    tests = [{"path": name, **TEST_NAMES.get(name, {})} for name in TESTS if name in names]
    if not tests:
        return None
    code: dict[str, Any] = {"tests": tests}
    if (solutions := _first(SOLUTIONS, names)) is not None:
        code["solutions"] = [{"path": solutions}]
    starter = _first(STARTERS, names)
    if "entry_point" in names:  # HumanEval, whose solutions are bodies
        code["function"], starter = "entry_point", _first(STATEMENTS, names)
    if starter is not None:
        code["starter"] = starter
    try:
        tables = code_tables([str(at) for at in range(len(rows))], rows, CodeColumns.model_validate(code))
    except BadRowError:
        if _first(ANSWERS, names) is None:
            raise
        return None
    return code, int(tables.tests.group_by("problem").len()["len"].quantile(0.1) or 0)


def guessed_columns(
    rows: Sequence[Mapping[str, Any]], path: Path, *, with_answer: bool = True
) -> dict[str, str | dict[str, str]]:
    """Return the columns of the statement and, if wanted, of answer, language and choices.

    Raises:
        ConfigError: no column can be the statement or the answer.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    statement = _first(STATEMENTS, names)
    answer = _first(ANSWERS, [name for name in names if name != statement])
    if statement is None or (with_answer and answer is None):
        what, usual = ("statement", STATEMENTS) if statement is None else ("answer", ANSWERS)
        raise ConfigError(
            f"{path}: no column has a usual name of {what}s ({', '.join(usual)}); its columns are "
            f"{', '.join(names) or 'none'}. Rename one, or write `columns` by hand: docs/how-to/sources.md."
        )
    if not with_answer or answer is None:
        return {"statement": statement}
    texts = [str(row.get(answer) or "") for row in rows]
    found: dict[str, str | dict[str, str]] = {"statement": statement, "answer": answer}
    for take, mark in MARKS.items():
        if sum(mark in text for text in texts) > len(texts) / 2:
            found["answer"] = {"path": answer, "take": take}
    for field, known in (("lang", LANGUAGES), ("choices", CHOICES)):
        if (name := _first(known, names)) is not None:
            found[field] = name
    return found


def _first(usual: Iterable[str], names: Sequence[str]) -> str | None:
    by_name = {name.lower(): name for name in reversed(names)}
    return next((by_name[name] for name in usual if name in by_name), None)


def _inline(value: str | Sequence[Any] | Mapping[str, Any]) -> str:
    """Return a text, list or table as TOML, on one line."""
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_inline(inner)}' for key, inner in value.items())} }}"
    return f"[{', '.join(map(_inline, value))}]"
