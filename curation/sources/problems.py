"""Rows of files and data sets into Problems, by the column map of the recipe.

Reads .jsonl (also .gz and .zst), .parquet, .csv, and Hugging Face data sets by hub name, local folder or
saved-to-disk folder, a batch at a time: memory does not grow with the source, but for a joined table and a quota.

Invariants:
  - every row of the source that its `where`, quota and limit take becomes a row of `PROBLEM`, with its position in the
    source; a missing statement or answer stays null and is dropped, with its reason, by the format filter;
  - a path, column or type that is not as the recipe says is one `SourceError` that lists what was there instead.

Not here: any judgement of the rows; rows that are set aside since they cannot be read (`curation.sources.quarantine`).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from curation.config import Column, Pick, Source
from curation.licenses import canonical_license, checked_license
from curation.records import PROBLEM, SourceError, problem_id
from curation.sources.places import joined_place, place_of
from curation.sources.rows import BadRowError, Row, last_boxed, parse_options, require_path, value_at
from curation.sources.selection import SelectionCounts, selected_rows
from curation.sources.tables import TableState, table_state

VERSION = "sources@4"

_META = json.JSONEncoder(default=str, ensure_ascii=False)

FIRST_ROWS = 1000
"""Rows in which a column must appear at least once; later rows may lack it."""


def source_state(source: Source, folder: Path) -> TableState:
    """Return what the source holds: a hash of its content, its joined table's too, and its commit where it has one."""
    own = table_state(place_of(source), folder)
    if (joined := joined_place(source)) is None:
        return own
    beside = table_state(joined, folder)
    return TableState(f"{own.digest}+{beside.digest}", own.commit, beside.commit)


def source_digest(source: Source, folder: Path) -> str:
    """Return a hash of what the source holds."""
    return source_state(source, folder).digest


def read_source(source: Source, folder: Path, batch_rows: int) -> Iterator[pl.DataFrame]:
    """Yield the source's rows as frames in the `PROBLEM` schema, ``batch_rows`` rows each, in the source's order.

    Args:
        folder: what relative paths are relative to.
    """
    for positions, batch in read_batches(source, folder, batch_rows):
        yield problem_rows(source, batch, positions)


def read_batches(
    source: Source, folder: Path, batch_rows: int, counts: SelectionCounts | None = None
) -> Iterator[tuple[list[int], list[Row]]]:
    """Yield the rows that are taken, ``batch_rows`` at a time, each batch with the positions of its rows in the source.

    The first rows are checked for the columns of the map before any is handed out.

    Args:
        counts: is counted up while rows are read.
    """
    rows = selected_rows(source, folder, batch_rows, counts=counts)
    first = list(itertools.islice(rows, FIRST_ROWS))
    if not first:
        raise SourceError(f"source {source.name}: {source.path} holds no rows{taken_by(source)}.")
    check_columns(source, [placed.row for placed in first if placed.row is not None])
    again = itertools.chain(first, rows)
    while batch := list(itertools.islice(again, batch_rows)):
        yield [placed.position for placed in batch], [placed.row for placed in batch if placed.row is not None]


def taken_by(source: Source) -> str:
    """Return which rows were looked for, where not all."""
    steps = [name for name in ("where", "quota", "join") if getattr(source, name) is not None]
    return f" that its {' and '.join(f'`{step}`' for step in steps)} take{'s'[len(steps) != 1 :]}" if steps else ""


def check_source(source: Source, folder: Path) -> None:
    """Read the first rows of a source, and refuse one that is not there, is empty, or lacks a column.

    Raises:
        SourceError: what is wrong, and what is there instead.
    """
    limit = min(source.limit or FIRST_ROWS, FIRST_ROWS)
    next(read_source(source.model_copy(update={"limit": limit}), folder, limit))


def check_columns(source: Source, rows: Sequence[Row]) -> None:
    """Refuse rows of which none has a column that the column map names.

    Raises:
        SourceError: which one, and what there is instead.
    """
    columns = source.columns
    where = f"source {source.name} ({source.path})"
    for column in (columns.statement, columns.answer, columns.choices, columns.solution, columns.lang, columns.license):
        path = column.path if isinstance(column, Pick) else column
        if path is not None:
            require_path(rows, path, where)
    for path in columns.meta:
        require_path(rows, path, where)


def problem_rows(
    source: Source, rows: Sequence[Row], positions: Sequence[int], statements: Sequence[str | None] | None = None
) -> pl.DataFrame:
    """Return rows of a source in the `PROBLEM` schema.

    Args:
        positions: of the rows in the source, from 0.
        statements: the statements where they are not simply what the column map names.
    """
    columns = source.columns
    place = f"source {source.name} ({source.path})"
    if statements is None:
        statements = read_texts(columns.statement, rows, place, positions)
    choices = read_choices(columns.choices, rows, place, positions)
    ids = [problem_id(text or "", options, source.domain) for text, options in zip(statements, choices, strict=True)]
    height = len(rows)
    return pl.DataFrame(
        {
            "id": ids,
            "group": ids,
            "domain": [source.domain] * height,
            "statement": statements,
            "answer": read_texts(columns.answer, rows, place, positions),
            "choices": choices,
            "solution": read_texts(columns.solution, rows, place, positions),
            "lang": [lang or "en" for lang in read_texts(columns.lang, rows, place, positions)],
            "source": [source.name] * height,
            "row": list(positions),
            "license": _licenses(source, rows, place, positions),
            "weight": [source.weight] * height,
            "raw_statement": [None] * height,
            "raw_answer": [None] * height,
            "meta": [_meta(columns.meta, row) for row in rows],
        },
        schema=PROBLEM,
    )


def read_texts(column: Column | None, rows: Sequence[Row], place: str, positions: Sequence[int]) -> list[str | None]:
    """Return one column of the rows as text. Numbers become their usual writing; lists and objects are refused.

    Args:
        place, positions: what errors name: the source, and the positions of the rows in it.
    """
    pick = column if isinstance(column, Pick) else Pick(path=column) if column is not None else Pick(value="")
    if pick.path is None:
        return [pick.value or None] * len(rows)
    texts: list[str | None] = []
    for number, row in zip(positions, rows, strict=True):
        value = value_at(row, pick.path)
        if value is not None and type(value) is not str:
            value = _as_text(value, pick.path, f"{place}, row {number}")
        texts.append(_take(pick.take, value) if value is not None else None)
    return texts


def _licenses(source: Source, rows: Sequence[Row], place: str, positions: Sequence[int]) -> list[str]:
    """Return the licence of each row: its own, or the source's.

    Raises:
        BadRowError: a row's is no SPDX expression.
    """
    licenses = [source.license] * len(rows)
    if source.columns.license is None:
        return licenses
    for at, text in enumerate(read_texts(source.columns.license, rows, place, positions)):
        if text is not None and text.strip():
            try:
                licenses[at] = _spelled(checked_license(text.strip()), source.license)
            except ValueError as error:
                raise BadRowError(f"{place}, row {positions[at]}: {error}.") from error
    return licenses


def _spelled(license: str, known: str) -> str:
    """Return a row's licence as its source's is spelled, or as SPDX does, so that `mit` and `MIT` count as one."""
    return known if license.lower() == known.lower() else canonical_license(license)


def read_choices(
    column: Column | None, rows: Sequence[Row], place: str, positions: Sequence[int]
) -> list[list[str] | None]:
    """Return one column of the rows as lists of options."""
    path = column.path if isinstance(column, Pick) else column
    if path is None:
        return [None] * len(rows)
    return [
        parse_options(value_at(row, path), f"{place}, row {number}: `{path}`")
        for number, row in zip(positions, rows, strict=True)
    ]


def _as_text(value: Any, path: str, where: str) -> str:
    if isinstance(value, bool | int | float):
        return str(value)
    kind = "a list; name one of its items" if isinstance(value, list) else type(value).__name__
    hint = f", as in `{path}.0`" if isinstance(value, list) else ""
    raise BadRowError(f"{where}: `{path}` should be text, but is {kind}{hint}: {str(value)[:80]!r}.")


def _take(take: str, text: str) -> str | None:
    if take == "hash":
        _, mark, answer = text.rpartition("####")
        return answer.strip() if mark else None
    if take == "boxed":
        return last_boxed(text)
    return text


def _meta(paths: Sequence[str], row: Row) -> str | None:
    return _META.encode({path: value_at(row, path) for path in paths}) if paths else None
