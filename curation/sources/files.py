"""Rows of files by their kind: the one door to JSON lines, CSV and parquet.

Invariants: rows come in the file's order, one at a time; a file that is missing or of another kind is one
`SourceError`; what of it cannot be read is a `RawRow` without a row, and a `BadRowError` for who wants rows alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from curation.records import SourceError
from curation.sources.csv_rows import csv_rows
from curation.sources.json_rows import json_rows
from curation.sources.parquet_rows import parquet_rows
from curation.sources.rows import RawRow, Row
from curation.sources.streams import PACKINGS


def raw_rows(path: Path, kind: str, batch_rows: int = 10_000, damage: str = "") -> Iterator[RawRow]:
    """Yield every row of a ``jsonl``, ``csv`` or ``parquet`` file, those that cannot be read too.

    Args:
        damage: why the file ends too early, of a copy of one that is damaged where it lies.

    Raises:
        SourceError: the file is missing.
    """
    if kind == "jsonl":
        return json_rows(path, damage)
    return csv_rows(path, damage) if kind == "csv" else parquet_rows(path, batch_rows)


def read_rows(path: Path, batch_rows: int = 10_000) -> Iterator[Row]:
    """Return an iterator over the rows of one .jsonl, .parquet or .csv file, packed or not."""
    return (raw.read() for raw in raw_rows(path, kind_of(path), batch_rows))


def numbered_jsonl(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a file of JSON lines with the number of each line, from 1."""
    return ((raw.line, raw.read()) for raw in json_rows(path))


def kind_of(path: Path) -> Literal["jsonl", "csv", "parquet"]:
    """Return what a file's name says that it holds, as in a recipe's ``kind``.

    Raises:
        SourceError: it says nothing that can be read.
    """
    suffixes = [suffix for suffix in path.suffixes if suffix not in PACKINGS]
    match suffixes[-1] if suffixes else "":
        case ".jsonl" | ".json" | ".ndjson":
            return "jsonl"
        case ".csv":
            return "csv"
        case ".parquet":
            return "parquet"
    raise SourceError(f"{path}: not a .jsonl, .jsonl.gz, .jsonl.zst, .parquet or .csv file.")
