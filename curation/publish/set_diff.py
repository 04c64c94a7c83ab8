"""Compare two published sets by problem id.

Invariant: every id is in exactly one class of `curation.publish.versions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from curation.publish import versions
from curation.publish.versions import VersionChange

REWORDED = "reworded"
"""The class of problems with another id in each set, since one has them rewritten."""

CHANGES = pl.Schema(
    {
        **versions.CHANGES,
        "old_problem": pl.String(),  # the id in the old set, where it is another one; else null
        "differs": pl.List(pl.String()),  # contents that differ in a problem that is in both sets
    }
)
"""One row a problem of either set."""

_ROW = ("source", "row")
_MEASURES = {"policy": pl.String(), "pass_rate": pl.Float64(), "judged": pl.Int32()}

NO_CONTENT = frozenset(
    "id also_from source row policy attempts judged correct pass_rate pass_rate_low pass_rate_high decided_by "
    "measured_on first_policy first_pass_rate".split()
)
"""Columns of identity, origin and difficulty; others are contents, which are only compared: their hashes do as well."""

READ = ("id", *_ROW, *_MEASURES)
"""The columns of `NO_CONTENT` that are read."""


@dataclass(frozen=True, slots=True)
class PublishedTables:
    """A published set's tables; ``further`` has digests of other content per problem."""

    data: pl.DataFrame
    dropped: pl.DataFrame
    further: Mapping[str, pl.DataFrame] = field(default_factory=dict)


def compare(old: PublishedTables, new: PublishedTables) -> pl.DataFrame:
    """Return a `CHANGES` row per problem of either set, in the order of the new one, then those that are gone."""
    table = versions.changes(_outcomes(old), _outcomes(new))
    pairs = _reworded(old, new, table)
    for found in (_differing(old, new), pairs):
        table = table.join(found, on="problem", how="left", maintain_order="left")
    is_reworded = pl.col("old_problem").is_not_null()
    return (
        table.filter(~pl.col("problem").is_in(pairs["old_problem"].implode()))
        .with_columns(
            change=pl.when(is_reworded).then(pl.lit(REWORDED)).otherwise("change"),
            differs=pl.col("differs").fill_null([]),
        )
        .select(CHANGES.names())
        .cast(CHANGES)
    )


def count_changes(table: pl.DataFrame) -> dict[str, int]:
    """Return the number of problems of every class."""
    return {**versions.counts(table), REWORDED: table.filter(pl.col("change") == REWORDED).height}


def count_differing(table: pl.DataFrame) -> dict[str, int]:
    """Count common problems by differing content, most frequent first."""
    counts = table.explode("differs").drop_nulls("differs").group_by("differs").len()
    return dict(counts.sort(["len", "differs"], descending=[True, False]).iter_rows())


def rate_shift(table: pl.DataFrame) -> tuple[int, float | None]:
    """Return how many problems both sets measured, and the mean change of their pass rates."""
    both = table.filter(pl.col("change").is_in([VersionChange.KEPT.value, REWORDED]))
    moves = (both["new_pass_rate"] - both["old_pass_rate"]).drop_nulls()
    shift = moves.mean()
    return len(moves), float(shift) if isinstance(shift, float) else None


def _outcomes(tables: PublishedTables) -> pl.DataFrame:
    """Return each problem's outcome, what of `DECISION` is compared; a kept row, else the last dropped one."""
    sides = []
    for frame, keep in ((tables.data, True), (tables.dropped, False)):
        missing = [pl.lit(None, dtype).alias(name) for name, dtype in _MEASURES.items() if name not in frame.columns]
        reason = pl.lit(None, pl.String) if keep else pl.col("reason")
        sides.append(
            frame.with_columns(missing).select(
                pl.col("id").alias("problem"),
                pl.lit(keep).alias("keep"),
                reason.alias("reason"),
                *(pl.col(name).cast(dtype) for name, dtype in _MEASURES.items()),
            )
        )
    kept, left = sides
    furthest = left.unique("problem", keep="last", maintain_order=True)
    return pl.concat([kept, furthest]).unique("problem", keep="first", maintain_order=True).with_row_index("at")


def _reworded(old: PublishedTables, new: PublishedTables, table: pl.DataFrame) -> pl.DataFrame:
    """Return ``problem``, ``old_problem`` of source rows with the same text and another id."""
    sides = []
    for tables, change, name in ((new, VersionChange.ADDED, "problem"), (old, VersionChange.REMOVED, "old_problem")):
        texts = [text for text in ("raw_statement", "statement") if text in tables.data.columns]
        if not texts:
            return pl.DataFrame(schema={"problem": pl.String, "old_problem": pl.String})
        moved = table.filter(pl.col("change") == change.value)["problem"]
        rows = tables.data.filter(pl.col("id").is_in(moved.implode()))
        sides.append(rows.select(*_ROW, pl.coalesce(*texts).alias("text"), pl.col("id").alias(name)))
    now, was = sides
    pairs = now.join(was, on=[*_ROW, "text"], maintain_order="left")["problem", "old_problem"]
    for name in pairs.columns:
        pairs = pairs.unique(name, keep="first", maintain_order=True)
    return pairs


def _differing(old: PublishedTables, new: PublishedTables) -> pl.DataFrame:
    """Return the names of differing contents of common problems in which any differ."""
    names = [name for name in new.data.columns if name in {*old.data.columns} - NO_CONTENT]
    both = new.data.select("id", *names).join(old.data.select("id", *names), on="id", suffix="_old")
    for name in old.further.keys() & new.further.keys():
        names.append(name)
        for tables, suffix in ((new, ""), (old, "_old")):
            digests = tables.further[name].rename({"problem": "id", "digest": f"{name}{suffix}"})
            both = both.join(digests, on="id", how="left")
    found = [pl.when(pl.col(name).ne_missing(pl.col(f"{name}_old"))).then(pl.lit(name)) for name in names]
    listed = pl.concat_list(found).list.drop_nulls() if found else pl.lit([], pl.List(pl.String))
    return both.select(problem="id", differs=listed).filter(pl.col("differs").list.len() > 0)
