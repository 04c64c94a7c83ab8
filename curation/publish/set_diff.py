"""Two published sets compared: who came in, who left and why, what moved, and which contents differ.

The sets may come from different recipes, policies or versions; a problem's id, a hash of its normalised content, is the
same in all of them. Invariants: pure functions over frames; every id of either set stands in exactly one class.

Not here: versions of one run, whose decisions are kept (`curation.publish.versions`, whose classes these are).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from curation.publish import versions
from curation.publish.versions import VersionChange
from curation.records import DECISION

REWORDED = "reworded"
"""The class of a problem whose row stands in both sets under different ids: one of them has it rewritten."""

CHANGES = pl.Schema(
    {
        **versions.CHANGES,
        "old_problem": pl.String(),  # the id in the old set, where it is another one; else null
        "differs": pl.List(pl.String()),  # contents that differ in a problem that stands in both sets
    }
)
"""One row a problem of either set."""

MEASURED = frozenset(
    "policy attempts judged correct pass_rate pass_rate_low pass_rate_high decided_by measured_on first_policy "
    "first_pass_rate".split()
)
"""Columns that say how hard a problem was; all others are contents, but where it was found."""

_PLACE = ("source", "row")
_WHERE_FOUND = frozenset({"id", "also_from", *_PLACE})
READ = MEASURED | _WHERE_FOUND
"""Columns that are read; of all others it is compared whether they are the same, so hashes may stand for them."""


@dataclass(frozen=True, slots=True)
class PublishedTables:
    """The tables of a published set: curated rows, dropped rows, and digests of what else belongs to its problems.

    ``further`` maps a name, such as ``tests``, to one row a problem: ``problem``, ``digest``.
    """

    data: pl.DataFrame
    dropped: pl.DataFrame
    further: Mapping[str, pl.DataFrame] = field(default_factory=dict)


def diff_sets(old: PublishedTables, new: PublishedTables) -> pl.DataFrame:
    """Return one `CHANGES` row per problem of either set, in the order of the new one, then those that are gone."""
    table = versions.changes(_outcomes(old), _outcomes(new))
    differing = _differing(old, new)
    joined = table.join(differing, on="problem", how="left", maintain_order="left")
    reworded = _reworded(old.data, new.data, table)
    joined = joined.join(reworded, on="problem", how="left", maintain_order="left")
    return (
        joined.filter(~pl.col("problem").is_in(reworded["old_problem"].implode()))
        .with_columns(
            change=pl.when(pl.col("old_problem").is_not_null()).then(pl.lit(REWORDED)).otherwise("change"),
            differs=pl.col("differs").fill_null([]),
        )
        .select(CHANGES.names())
        .cast(CHANGES)
    )


def count_changes(table: pl.DataFrame) -> dict[str, int]:
    """Return how many problems each class has; every class is named."""
    return {**versions.counts(table), REWORDED: table.filter(pl.col("change") == REWORDED).height}


def count_differing(table: pl.DataFrame) -> dict[str, int]:
    """Return in how many problems that stand in both sets each content differs, the most frequent first."""
    counts = table.explode("differs").drop_nulls("differs").group_by("differs").len()
    return dict(counts.sort(["len", "differs"], descending=[True, False]).iter_rows())


def rate_shift(table: pl.DataFrame) -> tuple[int, float | None]:
    """Return the number of problems that both sets measured, and by how much their mean pass rate moved."""
    both = table.filter(
        pl.col("change").is_in([VersionChange.KEPT.value, REWORDED])
        & pl.col("old_pass_rate").is_not_null()
        & pl.col("new_pass_rate").is_not_null()
    )
    shift = (both["new_pass_rate"] - both["old_pass_rate"]).mean()
    return both.height, float(shift) if isinstance(shift, float) else None


def _outcomes(tables: PublishedTables) -> pl.DataFrame:
    """Return what became of each problem, in the columns of `DECISION` that a comparison needs.

    Of several rows of a problem the kept one counts, else the one that got furthest: its copies left earlier.
    """
    kept = tables.data.select(problem="id", keep=True, reason=pl.lit(None, pl.String), **_measures(tables.data))
    left = tables.dropped.select(problem="id", keep=False, reason="reason", **_measures(tables.dropped))
    furthest = left.unique("problem", keep="last", maintain_order=True)
    rows = pl.concat([kept, furthest]).unique("problem", keep="first", maintain_order=True)
    rest = {name: pl.lit(None, dtype) for name, dtype in DECISION.items() if name not in rows.columns}
    return rows.with_columns(**rest)


def _measures(frame: pl.DataFrame) -> dict[str, pl.Expr]:
    wanted = {"policy": pl.String(), "pass_rate": pl.Float64(), "judged": pl.Int32()}
    return {
        name: pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype)
        for name, dtype in wanted.items()
    }


def _differing(old: PublishedTables, new: PublishedTables) -> pl.DataFrame:
    """Return ``problem``, ``differs`` of the problems whose contents differ in two sets that both have them."""
    names = [
        name
        for name in new.data.columns
        if name in old.data.columns and name not in MEASURED and name not in _WHERE_FOUND
    ]
    both = new.data.select("id", *names).join(old.data.select("id", *names), on="id", suffix="_old")
    found = [pl.when(pl.col(name).ne_missing(pl.col(f"{name}_old"))).then(pl.lit(name)) for name in names]
    for name in old.further.keys() & new.further.keys():
        sides = (tables.further[name].rename({"digest": digest}) for tables, digest in ((old, "was"), (new, "is")))
        was, now = sides
        both = both.join(was, left_on="id", right_on="problem", how="left")
        both = both.join(now, left_on="id", right_on="problem", how="left")
        both = both.with_columns(pl.col("was").ne_missing(pl.col("is")).alias(f"{name}_differ")).drop("was", "is")
        found.append(pl.when(f"{name}_differ").then(pl.lit(name)))
    listed = pl.concat_list(found).list.drop_nulls() if found else pl.lit([], pl.List(pl.String))
    return both.select(problem="id", differs=listed).filter(pl.col("differs").list.len() > 0)


def _reworded(old: pl.DataFrame, new: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """Return ``problem``, ``old_problem`` of rows whose id left the set while another one came for the same row."""
    new_text, old_text = _source_text(new), _source_text(old)
    if new_text is None or old_text is None:
        return pl.DataFrame(schema={"problem": pl.String, "old_problem": pl.String})
    came = table.filter(pl.col("change") == VersionChange.ADDED.value)["problem"]
    left = table.filter(pl.col("change") == VersionChange.REMOVED.value)["problem"]
    now = new.filter(pl.col("id").is_in(came.implode())).select(*_PLACE, text=new_text, problem="id")
    was = old.filter(pl.col("id").is_in(left.implode())).select(*_PLACE, text=old_text, old_problem="id")
    pairs = now.join(was, on=[*_PLACE, "text"], maintain_order="left")
    return pairs.unique("problem", keep="first", maintain_order=True).unique(
        "old_problem", keep="first", maintain_order=True
    )["problem", "old_problem"]


def _source_text(frame: pl.DataFrame) -> pl.Expr | None:
    """Return the statement as the source has it, or its hash; None in frames without texts."""
    columns = [name for name in ("raw_statement", "statement") if name in frame.columns]
    return pl.coalesce(*columns) if columns else None
