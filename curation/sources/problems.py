"""Rows of sources as Problems, by the recipe's column map.

Invariants: rows keep their positions; a missing statement or answer is null; a wrong type is a `BadRowError`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import polars as pl

from curation.config import Column, Pick, Source
from curation.licenses import canonical_license, checked_license
from curation.records import PROBLEM, problem_id
from curation.sources.rows import BadRowError, Row, parse_options, require_path, value_at
from curation.verify.boxes import boxed_answer

VERSION = "sources@6"

_META = json.JSONEncoder(default=str, ensure_ascii=False)


def check_columns(source: Source, rows: Sequence[Row]) -> None:
    """Refuse rows that all lack a mapped column.

    Raises:
        SourceError: names the column and existing ones.
    """
    mapped = (column for name, column in source.columns if name != "meta")
    paths = (column.path if isinstance(column, Pick) else column for column in mapped)
    for path in (*filter(None, paths), *source.columns.meta):
        require_path(rows, path, f"source {source.name} ({source.path})")


def problem_rows(
    source: Source, rows: Sequence[Row], positions: Sequence[int], statements: Sequence[str | None] | None = None
) -> pl.DataFrame:
    """Return a source's rows in the `PROBLEM` schema.

    Args:
        positions: in the source, from 0.
        statements: replace the column map's.

    Raises:
        BadRowError: a value has a wrong type.
    """
    columns = source.columns
    if statements is None:
        statements = read_texts(columns.statement, rows)
    choices = read_choices(columns.choices, rows)
    ids = [problem_id(text or "", options, source.domain) for text, options in zip(statements, choices, strict=True)]
    read: dict[str, Sequence[Any]] = {
        "id": ids,
        "group": ids,
        "statement": statements,
        "answer": read_texts(columns.answer, rows),
        "choices": choices,
        "solution": read_texts(columns.solution, rows),
        "lang": [lang or "en" for lang in read_texts(columns.lang, rows)],
        "row": list(positions),
        "license": _licenses(source, rows),
        "meta": [_meta(columns.meta, row) for row in rows],
    }
    of_source = {"domain": source.domain, "source": source.name, "weight": source.weight}
    frame = pl.DataFrame(read, schema={name: PROBLEM[name] for name in read})
    frame = frame.with_columns(pl.lit(value, PROBLEM[name]).alias(name) for name, value in of_source.items())
    return frame.match_to_schema(PROBLEM, missing_columns="insert")


def read_texts(column: Column | None, rows: Sequence[Row]) -> list[str | None]:
    """Return a column as text, including numbers; lists and objects are refused."""
    pick = column if isinstance(column, Pick) else Pick(path=column) if column is not None else Pick(value="")
    if pick.path is None:
        return [pick.value or None] * len(rows)
    texts: list[str | None] = []
    for row in rows:
        value = value_at(row, pick.path)
        if value is not None and type(value) is not str:
            value = _as_text(value, pick.path)
        texts.append(_take(pick.take, value) if value is not None else None)
    return texts


def _licenses(source: Source, rows: Sequence[Row]) -> list[str]:
    licenses = [source.license] * len(rows)
    if source.columns.license is None:
        return licenses
    for at, text in enumerate(read_texts(source.columns.license, rows)):
        if text is not None and text.strip():
            try:
                own = checked_license(text.strip())
            except ValueError as error:
                raise BadRowError(f"{error}.") from error
            if own.lower() != source.license.lower():
                licenses[at] = canonical_license(own)
    return licenses


def read_choices(column: Column | None, rows: Sequence[Row]) -> list[list[str] | None]:
    """Return a column's options per row."""
    path = column.path if isinstance(column, Pick) else column
    return [None if path is None else parse_options(value_at(row, path), path) for row in rows]


def _as_text(value: Any, path: str) -> str:
    if isinstance(value, bool | int | float):
        return str(value)
    kind = "a list; name one of its items" if isinstance(value, list) else type(value).__name__
    hint = f", as in `{path}.0`" if isinstance(value, list) else ""
    raise BadRowError(f"`{path}` should be text, but is {kind}{hint}: {str(value)[:80]!r}.")


def _take(take: str, text: str) -> str | None:
    if take == "hash":
        _, mark, answer = text.rpartition("####")
        return answer.strip() if mark else None
    if take == "boxed":
        return boxed_answer(text)
    return text


def _meta(paths: Sequence[str], row: Row) -> str | None:
    return _META.encode({path: value_at(row, path) for path in paths}) if paths else None
