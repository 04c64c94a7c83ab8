"""Classifies the rows of a file for `goldilocks verify statements`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from curation.config import Source
from curation.filters.statements.filtering import classify
from curation.records import ConfigError
from curation.sources.files import kind_of, raw_rows
from curation.sources.problems import read_choices, read_texts
from curation.sources.reading import FIRST_ROWS, read_parts
from curation.sources.rows import Row, require_path

FIELDS = ("statement", "answer", "choices", "lang", "id", "source", "meta")
MAPPED_ONLY = ("source", "meta")
"""Fields that are read only where `--map` names them: in other files these names mean other things."""
BATCH = 20_000


def classified(path: Path, mapped: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield id, keep, reason, evidence, statement and answer of each batch of a file's rows, in order."""
    kind = kind_of(path)
    raws = list(itertools.islice(raw_rows(path, kind), FIRST_ROWS))
    if not raws:
        return
    places = _columns([raw.row for raw in raws if raw.row is not None], mapped, path)
    table = {"name": "file", "kind": kind, "path": str(path.resolve())}
    source = Source.model_validate({**table, "columns": {"statement": places["statement"]}})

    def build(rows: list[Row], positions: Sequence[int]) -> pl.DataFrame:
        columns: dict[str, list[Any]] = {
            field: (read_choices if field == "choices" else read_texts)(column, rows)
            for field, column in places.items()
        }
        names = [
            name if name is not None else str(position) for name, position in zip(columns["id"], positions, strict=True)
        ]
        kinds = {name: pl.List(pl.String()) if name == "choices" else pl.String() for name in columns}
        return classify(pl.DataFrame({**columns, "id": names}, schema=kinds)).drop("rule")

    for part in read_parts(source, Path.cwd(), BATCH, build):
        yield part.built


def _columns(first: Sequence[Row], mapped: Sequence[str], path: Path) -> dict[str, str]:
    """Return field → column: by ``--map``, else by the usual names, if they are there.

    Raises:
        ConfigError: an item is not FIELD=COLUMN, or names no field.
        SourceError: the first rows lack the statement, or a column that is mapped.
    """
    given = {}
    for item in mapped:
        field, equals, column = item.partition("=")
        if not equals or field not in FIELDS:
            raise ConfigError(f"--map {item}: write FIELD=COLUMN; fields are {', '.join(FIELDS)}.")
        given[field] = column
    named = {name for row in first for name in row}
    statement = "statement" if "statement" in named and "problem" not in named else "problem"
    usual = {name: name for name in FIELDS if name not in MAPPED_ONLY}
    columns = {**usual, "statement": statement, **given}
    for field in {"statement", *given}:
        require_path(first, columns[field], f"{path} ({field})")
    return columns
