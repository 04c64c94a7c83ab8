"""Classifies the rows of a file for `goldilocks verify statements`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from curation.config import Source
from curation.filters.statements.filtering import classify
from curation.records import ConfigError
from curation.sources.files import kind_of, raw_rows
from curation.sources.problems import read_choices, read_texts
from curation.sources.reading import FIRST_ROWS, read_parts
from curation.sources.rows import Row, require_path

FIELDS = ("statement", "answer", "choices", "lang", "id")
BATCH = 20_000


def mapped_names(items: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Return the columns that ``--map`` names, each FIELD=COLUMN, by field.

    Raises:
        ConfigError: an item is none, or its field is not known.
    """
    mapped = {}
    for item in items:
        field, _, mapped[field] = item.partition("=")
        if field not in known or not mapped[field]:
            raise ConfigError(f"--map {item}: write FIELD=COLUMN; fields are {', '.join(known)}.")
    return mapped


def classified(path: Path, items: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield id, keep, reason, evidence, statement and answer of each batch of a file's rows, in order.

    Args:
        items: columns of fields, each FIELD=COLUMN; other fields have their usual columns.

    Raises:
        SourceError: the first rows lack the statement, or a column that is mapped.
    """
    kind, mapped = kind_of(path), mapped_names(items, FIELDS)
    raws = list(itertools.islice(raw_rows(path, kind), FIRST_ROWS))
    if not raws:
        return
    first = [raw.row for raw in raws if raw.row is not None]
    named = {name for row in first for name in row}
    usual = "statement" if "statement" in named and "problem" not in named else "problem"
    columns = {**dict(zip(FIELDS, FIELDS, strict=True)), "statement": usual, **mapped}
    for field in {"statement", *mapped}:
        require_path(first, columns[field], f"{path} ({field})")
    table = {"name": "file", "kind": kind, "path": str(path.resolve())}
    source = Source.model_validate({**table, "columns": {"statement": columns["statement"]}})

    def build(rows: list[Row], positions: Sequence[int]) -> pl.DataFrame:
        texts = {field: read_texts(columns[field], rows) for field in FIELDS if field != "choices"}
        ids = [name if name is not None else str(row) for name, row in zip(texts["id"], positions, strict=True)]
        choices = pl.Series(read_choices(columns["choices"], rows), dtype=pl.List(pl.String))
        table = pl.DataFrame({**texts, "id": ids}, schema=dict.fromkeys(texts, pl.String))
        return classify(table.with_columns(choices=choices)).drop("rule")

    for part in read_parts(source, Path.cwd(), BATCH, build):
        yield part.built
