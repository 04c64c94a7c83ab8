"""Drops problems that overlap with benchmarks.

Invariants: in = kept + dropped; refused problems without an overlap are dropped as `sampling_failed`.
"""

from __future__ import annotations

import polars as pl

from curation.filters.decontamination.overlap import OVERLAP, TEMPLATE
from curation.records import DROPPED, DropReason

STAGE = "decontamination"

REFUSED = pl.Schema({"row": pl.Int64(), "kind": pl.String(), "reason": pl.String()})
"""Problems that servers refused to embed: index, failure kind, message."""


def drop_contaminated(
    problems: pl.DataFrame, hits: pl.DataFrame, *, with_templates: bool = False, refused: pl.DataFrame | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split a shard into `PROBLEM` rows and `DROPPED` ones, in order.

    Args:
        hits: `overlap.HIT` rows; the first per method is evidence.
        refused: `REFUSED` rows.
    """
    counted = hits if with_templates else hits.filter(pl.col("kind") == OVERLAP)
    best = counted.group_by("row", "method", maintain_order=True).first()
    hit_text = pl.format(
        "{}{} {} with row {} of {}",
        pl.when(pl.col("kind") == TEMPLATE).then(pl.lit("template, ")).otherwise(pl.lit("")),
        "method",
        pl.col("score").round(3),
        "benchmark_row",
        "benchmark",
    )
    unread = REFUSED.to_frame() if refused is None else refused
    reasons = [
        best.group_by("row", maintain_order=True).agg(
            evidence=hit_text.str.join("; "), reason=pl.lit(DropReason.CONTAMINATED.value)
        ),
        unread.select(
            "row",
            evidence=pl.format("no vector, refused ({}): {}", "kind", "reason"),
            reason=pl.lit(DropReason.SAMPLING_FAILED.value),
        ),
    ]
    why = pl.concat(reasons).unique("row", keep="first", maintain_order=True).with_columns(stage=pl.lit(STAGE))
    places = problems.with_row_index("_at").with_columns(pl.col("_at").cast(pl.Int64))
    joined = places.join(why, left_on="_at", right_on="row", how="left", maintain_order="left")
    is_kept = pl.col("reason").is_null()
    return joined.filter(is_kept).select(problems.columns), joined.filter(~is_kept).select(DROPPED.names())


def count_templates(hits: pl.DataFrame) -> int:
    """Count problems with template hits only."""
    overlapping = hits.filter(pl.col("kind") == OVERLAP)["row"]
    return hits.filter((pl.col("kind") == TEMPLATE) & ~pl.col("row").is_in(overlapping.implode()))["row"].n_unique()


def format_hits(problems: pl.DataFrame, hits: pl.DataFrame) -> pl.DataFrame:
    """Replace indices by the problems' ids, sources and rows."""
    places = problems.select("id", "source", pl.col("row").alias("source_row"))[hits["row"]]
    located = places.hstack(hits.drop("row"))
    return located.rename({"source_row": "row"})
