"""Changes between two versions of a set, from their decisions (`DECISION`), or between two published sets.

Invariant: every problem is in exactly one class (`VersionChange`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import polars as pl

from curation.publish.pages import render_template
from curation.records import DECISION, DropReason


class VersionChange(StrEnum):
    """What became of a problem between two versions."""

    PROMOTED = "promoted"  # was dropped, is kept
    RETIRED = "retired"  # was kept, is too easy now
    DEFERRED = "deferred"  # was kept, is not solved now
    WRONG_LABELLED = "newly_suspected"  # its label is suspected now and was not
    DROPPED = "dropped"  # was kept, is dropped for another reason
    ADDED = "added"  # is kept, was not there
    REMOVED = "removed"  # was kept, is not there
    KEPT = "kept"  # kept in both
    LEFT_OUT = "left_out"  # in neither set


MOVED = tuple(change for change in VersionChange if change not in (VersionChange.KEPT, VersionChange.LEFT_OUT))

KEPT = pl.Schema(
    {
        **DECISION,
        "measured_on": pl.String(),  # day of the first attempt, YYYY-MM-DD in UTC
        "published": pl.Boolean(),  # kept, and not over the set's size
    }
)
"""A version's stored table, a row per problem."""

CHANGES = pl.Schema(
    {
        "problem": pl.String(),
        "change": pl.String(),
        "old_reason": pl.String(),  # why it was dropped; null if it was kept or missing
        "new_reason": pl.String(),
        "old_policy": pl.String(),
        "new_policy": pl.String(),
        "old_pass_rate": pl.Float64(),
        "new_pass_rate": pl.Float64(),
        "old_judged": pl.Int32(),
        "new_judged": pl.Int32(),
    }
)

EXAMPLES = 5

_SHOWN = ("reason", "policy", "pass_rate", "judged")
COMPARED = ("problem", "keep", *_SHOWN)
"""Compared columns of decisions."""


def changes(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Return a `CHANGES` row per problem, with whether it is ``gone``; in the new version's order, then gone ones.

    Args:
        old, new: decisions with their position ``at``.
    """
    tables = (
        frame.select("problem", pl.col("keep", "at", *_SHOWN).name.prefix(prefix))
        for frame, prefix in ((new, "new_"), (old, "old_"))
    )
    joined = next(tables).join(next(tables), on="problem", how="full", coalesce=True)
    was, now, reason = pl.col("old_keep"), pl.col("new_keep"), pl.col("new_reason")
    suspected = DropReason.SUSPECTED_WRONG_LABEL.value
    rules = {
        VersionChange.REMOVED: now.is_null() & was,
        VersionChange.ADDED: was.is_null() & now,
        VersionChange.WRONG_LABELLED: (reason == suspected) & pl.col("old_reason").ne_missing(suspected),
        VersionChange.KEPT: was & now,
        VersionChange.PROMOTED: ~was & now,
        VersionChange.RETIRED: was & (reason == DropReason.TOO_EASY.value),
        VersionChange.DEFERRED: was & (reason == DropReason.NEVER_SOLVED.value),
        VersionChange.DROPPED: was & ~now,
        VersionChange.LEFT_OUT: pl.lit(True),
    }
    first = pl.coalesce(*(pl.when(holds).then(pl.lit(change.value)) for change, holds in rules.items()))
    placed = joined.with_columns(change=first, gone=pl.col("new_at").is_null(), at=pl.coalesce("new_at", "old_at"))
    return placed.select(*(pl.col(name).cast(dtype) for name, dtype in CHANGES.items()), "gone", "at").sort(
        "gone", "at"
    )


def counts(table: pl.DataFrame) -> dict[str, int]:
    """Return the number of problems of every class."""
    number_of = dict(table.group_by("change").len().iter_rows())
    return {change.value: number_of.get(change.value, 0) for change in VersionChange}


def changelog(version: int, made_on: str, policy: str, number: Mapping[str, int], first: pl.DataFrame) -> str:
    """Return a version's Markdown section.

    Args:
        made_on: as YYYY-MM-DD.
        policy: as `model@revision`.
        number: `counts`.
        first: at least `EXAMPLES` changes of each class.
    """
    moved = first.filter(pl.col("change").is_in(MOVED)).sort("change", maintain_order=True)
    examples = moved.group_by("change", maintain_order=True)
    return render_template(
        Path(__file__).with_name("changelog.md.jinja"),
        version=version,
        made_on=made_on,
        policy=policy,
        number=number,
        moved=MOVED,
        examples=[(change, rows.head(EXAMPLES).to_dicts()) for (change,), rows in examples],
    )


DIFFERENCE = pl.Schema(
    {
        **CHANGES,
        "differs": pl.List(pl.String()),  # contents that differ in a problem that is in both sets
    }
)

_MEASURES = {"policy": pl.String(), "pass_rate": pl.Float64(), "judged": pl.Int32()}

NO_CONTENT = frozenset(
    "id also_from source row policy attempts judged correct pass_rate unbiased_pass_rate pass_rate_low pass_rate_high "
    "decided_by informed_by measured_on first_policy first_pass_rate pass_rate_of".split()
)
"""Columns of identity, origin and difficulty; others are contents, which may be compared by hash."""

READ = ("id", *_MEASURES)


@dataclass(frozen=True, slots=True)
class PublishedTables:
    """A published set's tables; ``further`` has digests of other content per problem."""

    data: pl.DataFrame
    dropped: pl.DataFrame
    further: Mapping[str, pl.DataFrame] = field(default_factory=dict)


def compare(old: PublishedTables, new: PublishedTables) -> pl.DataFrame:
    """Return a `DIFFERENCE` row per problem, in the new set's order, then removed ones."""
    table = changes(_outcomes(old), _outcomes(new))
    compared = table.join(_differing(old, new), on="problem", how="left", maintain_order="left")
    return compared.with_columns(pl.col("differs").fill_null([])).select(DIFFERENCE.names()).cast(DIFFERENCE)


def count_differing(table: pl.DataFrame) -> dict[str, int]:
    """Count common problems by differing content, most frequent first."""
    counts = table.explode("differs").drop_nulls("differs").group_by("differs").len()
    return dict(counts.sort(["len", "differs"], descending=[True, False]).iter_rows())


def rate_shift(table: pl.DataFrame) -> tuple[int, float | None]:
    """Return how many problems both sets measured, and the mean change of their pass rates."""
    both = table.filter(change=VersionChange.KEPT.value)
    moves = (both["new_pass_rate"] - both["old_pass_rate"]).drop_nulls()
    shift = moves.mean()
    return len(moves), float(shift) if isinstance(shift, float) else None


def _outcomes(tables: PublishedTables) -> pl.DataFrame:
    """Return each problem's compared columns of `DECISION`, of the kept row or else the last dropped one."""
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


def _differing(old: PublishedTables, new: PublishedTables) -> pl.DataFrame:
    names = [name for name in new.data.columns if name in {*old.data.columns} - NO_CONTENT]
    both = new.data.select("id", *names).join(old.data.select("id", *names), on="id", suffix="_old")
    for name in old.further.keys() & new.further.keys():
        names.append(name)
        for tables, suffix in ((new, ""), (old, "_old")):
            digests = tables.further[name].rename({"problem": "id", "digest": f"{name}{suffix}"})
            both = both.join(digests, on="id", how="left")
    flags = [pl.when(pl.col(name).ne_missing(pl.col(f"{name}_old"))).then(pl.lit(name)) for name in names]
    listed = pl.concat_list(flags).list.drop_nulls() if flags else pl.lit([], pl.List(pl.String))
    return both.select(problem="id", differs=listed).filter(pl.col("differs").list.len() > 0)
