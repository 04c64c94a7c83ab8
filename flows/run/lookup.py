"""Find a problem's rows in stages' tables."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from curation.storage.stages import damaged, table_files


def rows_of(folder: Path, table: str, problem: str, *columns: str) -> pl.DataFrame:
    """Return a problem's rows in a table, by any of these columns, by default ``id``."""
    columns = columns or ("id",)
    files = sorted((folder / table).glob("*.parquet"))
    try:
        is_own = pl.any_horizontal(pl.col(*columns) == problem)
        parts = [pl.scan_parquet(file, glob=False).filter(is_own).collect() for file in files]
        return pl.concat(parts) if parts else pl.DataFrame(schema=dict.fromkeys(columns, pl.String()))
    except pl.exceptions.PolarsError as error:
        table_files(folder, table)  # names the file that is not what was written
        raise damaged(folder / table, str(error).partition("\n")[0]) from error
