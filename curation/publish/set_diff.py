"""Compare two published sets by problem id.

Invariant: every id is in exactly one class of `curation.publish.versions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from curation.publish import versions
from curation.publish.versions import VersionChange

CHANGES = pl.Schema(
    {
        **versions.CHANGES,
        "differs": pl.List(pl.String()),  # contents that differ in a problem that is in both sets
    }
)
"""One row a problem of either set."""

EXAMPLES = 3
"""Problems of each class that are shown."""

MEASURED = frozenset(
    "policy attempts judged correct pass_rate pass_rate_low pass_rate_high decided_by measured_on first_policy "
    "first_pass_rate".split()
)
"""Columns of difficulty; others are content or location."""

_WHERE_FOUND = frozenset({"id", "also_from", "source", "row", "at"})
_MEASURES = {"policy": pl.String(), "pass_rate": pl.Float64(), "judged": pl.Int32()}
READ = frozenset({"id", *_MEASURES})
"""Columns that are read as they are."""

PASSED_OVER = (MEASURED | _WHERE_FOUND) - READ
"""Columns that are only compared, so hashes may replace them."""


@dataclass(frozen=True, slots=True)
class PublishedTables:
    """A published set's tables; ``further`` has digests of other content per problem."""

    data: pl.DataFrame
    dropped: pl.DataFrame
    further: Mapping[str, pl.DataFrame] = field(default_factory=dict)


def part_changes(old: PublishedTables, new: PublishedTables) -> pl.DataFrame:
    """Return sorted `CHANGES` rows, with whether they are ``gone`` and their position ``at``.

    Args:
        old, new: all rows of some problems, with position ``at``.
    """
    table = versions.changes(_outcomes(old), _outcomes(new))
    table = table.join(_differing(old, new), on="problem", how="left", maintain_order="left")
    return table.select(pl.col(CHANGES.names()[:-1]), pl.col("differs").fill_null([]), "gone", "at")


def count_differing(table: pl.DataFrame) -> dict[str, int]:
    """Count common problems by differing content, most frequent first."""
    counts = table.explode("differs").drop_nulls("differs").group_by("differs").len()
    return dict(counts.sort(["len", "differs"], descending=[True, False]).iter_rows())


def rate_shift(moves: pl.Series) -> tuple[int, float | None]:
    """Return how many problems both sets measured, and their mean change."""
    shift = moves.mean()
    return len(moves), float(shift) if isinstance(shift, float) else None


def rate_move() -> pl.Expr:
    """Return a row's change of pass rate, null unless measured twice."""
    return pl.when(change=VersionChange.KEPT.value).then(pl.col("new_pass_rate") - pl.col("old_pass_rate"))


def _outcomes(tables: PublishedTables) -> pl.DataFrame:
    """Return each problem's outcome, what of `DECISION` is compared; a kept row, else the last dropped one."""
    kept = tables.data.select("at", problem="id", keep=True, reason=pl.lit(None, pl.String), **_measures(tables.data))
    left = tables.dropped.select("at", problem="id", keep=False, reason="reason", **_measures(tables.dropped))
    furthest = left.unique("problem", keep="last", maintain_order=True)
    return pl.concat([kept, furthest]).unique("problem", keep="first", maintain_order=True)


def _measures(frame: pl.DataFrame) -> dict[str, pl.Expr]:
    return {
        name: pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype)
        for name, dtype in _MEASURES.items()
    }


def _differing(old: PublishedTables, new: PublishedTables) -> pl.DataFrame:
    names = [name for name in new.data.columns if name in {*old.data.columns} - MEASURED - _WHERE_FOUND]
    both = new.data.select("id", *names).join(old.data.select("id", *names), on="id", suffix="_old")
    found = [pl.when(pl.col(name).ne_missing(pl.col(f"{name}_old"))).then(pl.lit(name)) for name in names]
    for name in old.further.keys() & new.further.keys():
        for tables, side in ((old, "was"), (new, "is")):
            digests = tables.further[name].rename({"problem": "id", "digest": f"{name}_{side}"})
            both = both.join(digests, on="id", how="left")
        found.append(pl.when(pl.col(f"{name}_was").ne_missing(pl.col(f"{name}_is"))).then(pl.lit(name)))
    listed = pl.concat_list(found).list.drop_nulls() if found else pl.lit([], pl.List(pl.String))
    return both.select(problem="id", differs=listed).filter(pl.col("differs").list.len() > 0)
