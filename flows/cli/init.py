"""`goldilocks init`: writes a recipe for a file of problems."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from os.path import relpath
from pathlib import Path
from typing import Any

from curation.records import ConfigError
from curation.sources.files import kind_of, raw_rows
from curation.storage.stages import atomic_write

ROWS = 200
"""Rows that are read."""

STATEMENTS = ("problem", "question", "statement", "prompt", "instruction", "input", "query", "text")
ANSWERS = ("answer", "final_answer", "expected_answer", "ground_truth", "gold", "target", "label", "solution", "output")
LANGUAGES = ("lang", "language")
CHOICES = ("choices", "options")
MARKS = {"hash": "####", "boxed": "\\boxed{"}
"""Marks of a final answer, by name in a recipe."""

RECIPE = """\
# Made by `goldilocks init`: check the columns, then name the model whose problems these are.
name = {name}

[[sources]]
path = {path}
columns = {columns}

[models.student]
kind = "vllm" # on a GPU of this machine; "endpoint" with `urls` for servers, "torch" for the toy model
model = {model}
{revision}
[stage1] # keep what the student solves sometimes: neither never nor always
model = "student"
"""
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
    columns = guessed_columns(first, rows)
    path = relpath(rows, out.parent) if not rows.is_absolute() else str(rows)
    text = RECIPE.format(
        name=json.dumps(re.sub(r"[^a-z0-9]+", "-", rows.name.partition(".")[0].lower()).strip("-") or "problems"),
        path=json.dumps(path),
        columns=_inline(columns),
        model=json.dumps(model),
        revision="" if Path(model).is_dir() or model == "embedded" else REVISION,
    )
    atomic_write(out, text)
    named = {
        field: value if isinstance(value, str) else f"{value['path']} ({MARKS[value['take']]})"
        for field, value in columns.items()
    }
    found = ", ".join(f"{field} = {value}" for field, value in named.items())
    return [f"{out}: {found}, from the first {len(first):,} rows", f"next: goldilocks run {out} --dry"]


def guessed_columns(rows: Sequence[Mapping[str, Any]], path: Path) -> dict[str, str | dict[str, str]]:
    """Return the columns of statement and answer, and of language and choices if any.

    Raises:
        ConfigError: no column can be the statement or the answer.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    statement = _first(STATEMENTS, names)
    answer = _first(ANSWERS, [name for name in names if name != statement])
    if statement is None or answer is None:
        what, usual = ("statement", STATEMENTS) if statement is None else ("answer", ANSWERS)
        raise ConfigError(
            f"{path}: no column is named as {what}s are ({', '.join(usual)}); its columns are "
            f"{', '.join(names) or 'none'}. Rename one, or write `columns` by hand: docs/how-to/sources.md."
        )
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


def _inline(value: str | Mapping[str, Any]) -> str:
    """Return a text or table as TOML, on one line."""
    if isinstance(value, str):
        return json.dumps(value)
    return f"{{ {', '.join(f'{key} = {_inline(inner)}' for key, inner in value.items())} }}"
