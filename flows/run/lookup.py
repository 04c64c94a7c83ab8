"""Rows of one problem in the tables of a stage."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from curation.storage.stages import damaged


def rows_of(folder: Path, table: str, problem: str, column: str = "id") -> pl.DataFrame:
    """Return the rows of a stage's table whose ``column`` is the problem's id; none where there is no such table."""
    files = sorted((folder / table).glob("*.parquet"))
    parts = []
    for file in files:
        try:
            parts.append(pl.scan_parquet(file, glob=False).filter(pl.col(column) == problem).collect())
        except pl.exceptions.PolarsError as error:
            raise damaged(file, str(error).partition("\n")[0]) from error
    return pl.concat(parts) if parts else pl.DataFrame(schema={column: pl.String})
