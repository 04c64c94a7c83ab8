"""What the stages share: rows split by reason, and names of tables that several of them read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from curation.records import DROPPED, SourceError
from curation.sources.places import Place
from curation.sources.tables import table_files
from curation.storage.remote import is_url
from flows.run.run_folder import Run

TESTS_TABLE, SOLUTIONS_TABLE, JUDGING_TABLE = "tests", "solutions", "judging"
"""Next to the problems of a code pipeline: their tests, their solutions, and their limits and checkers."""


def split_rows(
    problems: pl.DataFrame, stage: str, reasons: Sequence[str | None], evidence: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split rows into kept and dropped ones, by a reason per row; None keeps it."""
    judged = problems.with_columns(
        pl.lit(stage).alias("stage"),
        pl.Series("reason", reasons, pl.String),
        pl.Series("evidence", evidence, pl.String),
    )
    kept = judged.filter(pl.col("reason").is_null()).select(problems.columns)
    return kept, judged.filter(pl.col("reason").is_not_null()).select(DROPPED.names())


def require_not_written(run: Run, place: Place, home: Path) -> None:
    """Refuse a table that is where the run itself writes its stages and its set.

    Args:
        home: what the table's path is relative to.

    Raises:
        SourceError: it is there, or there is no such file.
    """
    if is_url(place.path) or place.made is not None or place.kind == "python":
        return
    is_folder = place.kind in ("dataset", "kattis")
    for path in [home / place.path] if is_folder else [file.path for file in table_files(place, home)]:
        if any(path.resolve().is_relative_to((run.folder / own).resolve()) for own in ("stages", "curated")):
            raise SourceError(f"{path} is written by this run and cannot be its source too; give another --out.")
