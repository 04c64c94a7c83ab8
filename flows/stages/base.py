"""What the stages share: rows split by reason, and names of tables that several of them read."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from curation.records import DROPPED

TESTS_TABLE, SOLUTIONS_TABLE, JUDGING_TABLE = "tests", "solutions", "judging"
"""Beside the problems of a code pipeline: their tests, their solutions, and their limits and checkers."""


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
