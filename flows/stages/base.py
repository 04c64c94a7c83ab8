"""Helpers that several stages share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from curation.config import Source
from curation.records import DROPPED, SourceError
from curation.sources.tables import table_files
from curation.storage.remote import is_url
from flows.run.run_folder import Run

TESTS_TABLE, SOLUTIONS_TABLE, JUDGING_TABLE = "tests", "solutions", "judging"
"""Of code problems: tests, solutions, and limits with checkers."""


def split_rows(
    problems: pl.DataFrame, stage: str, reasons: Sequence[str | None], evidence: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split rows into kept and dropped ones; None as reason keeps a row."""
    judged = problems.with_columns(
        pl.lit(stage).alias("stage"),
        pl.Series("reason", reasons, pl.String),
        pl.Series("evidence", evidence, pl.String),
    )
    kept = judged.filter(pl.col("reason").is_null()).select(problems.columns)
    return kept, judged.filter(pl.col("reason").is_not_null()).select(DROPPED.names())


def require_not_written(run: Run, source: Source, home: Path) -> None:
    """Refuse a table in the run's own stages or set.

    Raises:
        SourceError: it is there, or missing.
    """
    if is_url(source.path) or source.made is not None or source.kind == "python":
        return
    is_folder = source.kind in ("dataset", "kattis")
    for path in [home / source.path] if is_folder else table_files(source, home):
        if any(path.resolve().is_relative_to((run.folder / own).resolve()) for own in ("stages", "curated")):
            raise SourceError(f"{path} is written by this run and cannot be its source too; give another --out.")
