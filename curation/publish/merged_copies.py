"""Sources and licences of duplicates merged into published problems.

Invariants: each copy belongs to one remaining row; rows with conflicting references are no copies.
"""

from __future__ import annotations

import polars as pl

from curation.records import DropReason

COPIES = pl.List(pl.Struct({"source": pl.String(), "row": pl.Int64(), "license": pl.String()}))
"""The type of columns of copies, which may be empty."""

_COPY = {"source": pl.String(), "row": pl.Int64(), "license": pl.String()}
_EDGE = pl.Schema({**_COPY, "kept_source": pl.String(), "kept_row": pl.Int64()})
_KEPT = ["kept_source", "kept_row"]


def merged_copies(
    exact_kept: pl.DataFrame, exact_dropped: pl.DataFrame, near_dropped: pl.DataFrame, members: pl.DataFrame
) -> pl.DataFrame:
    """Return ``source``, ``row`` and copies (``also_from``, `COPIES`) of rows with merged copies.

    Args:
        exact_kept: ``id``, ``source``, ``row``.
        exact_dropped: ``id``, ``source``, ``row``, ``license``, ``reason``.
        members: `curation.filters.dedup.near.MEMBER` rows.
    """
    first = exact_kept.select("id", kept_source="source", kept_row="row") if exact_kept.width else None
    exact, near = _EDGE.to_frame(), _EDGE.to_frame()
    if first is not None and exact_dropped.width:
        copies = exact_dropped.filter(pl.col("reason") == DropReason.DUPLICATE)
        exact = copies.join(first, on="id").select(_EDGE.names())
    if near_dropped.width and members.width:
        copies = near_dropped.filter(pl.col("reason") == DropReason.NEAR_DUPLICATE)
        near = copies.join(members.select("source", "row", *_KEPT), on=["source", "row"]).select(_EDGE.names())
    later = near.select(kept_source="source", kept_row="row", later_source="kept_source", later_row="kept_row")
    moved = exact.join(later, on=_KEPT, how="left").with_columns(
        kept_source=pl.coalesce("later_source", "kept_source"), kept_row=pl.coalesce("later_row", "kept_row")
    )
    edges = pl.concat([moved.select(_EDGE.names()), near]).sort("source", "row")
    grouped = edges.group_by(_KEPT, maintain_order=True).agg(also_from=pl.struct(*_COPY))
    return grouped.select(source="kept_source", row="kept_row", also_from=pl.col("also_from").cast(COPIES))


def with_copies(problems: pl.DataFrame, copies: pl.DataFrame) -> pl.DataFrame:
    """Return rows with their merged copies in ``also_from``."""
    joined = problems.join(copies, on=["source", "row"], how="left", maintain_order="left")
    return joined.with_columns(also_from=pl.col("also_from").fill_null([]).cast(COPIES))


def copies_of(problems: pl.LazyFrame) -> pl.LazyFrame:
    """Return all copies in ``also_from``: ``source``, ``row``, ``license``."""
    return problems.select(pl.col("also_from").list.explode()).drop_nulls().unnest("also_from").cast(pl.Schema(_COPY))
