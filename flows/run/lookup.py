"""Find a problem's rows in stages' tables."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from curation.storage.stages import damaged, table_files


def rows_of(folder: Path, table: str, problem: str, column: str = "id") -> pl.DataFrame:
    """Return a problem's rows in a table, by ``column``."""
    files = sorted((folder / table).glob("*.parquet"))
    try:
        parts = [pl.scan_parquet(file, glob=False).filter(pl.col(column) == problem).collect() for file in files]
        return pl.concat(parts) if parts else pl.DataFrame(schema={column: pl.String})
    except pl.exceptions.PolarsError as error:
        table_files(folder, table)  # names the file that is not what was written
        raise damaged(folder / table, str(error).partition("\n")[0]) from error
