"""A data card's facts, and derived figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from curation.publish.pages import Block, Section
from curation.records import DropReason


@dataclass(frozen=True, slots=True)
class FunnelRow:
    """A funnel stage; ``rows_in == kept + sum(reasons.values())``."""

    stage: str
    title: str
    rows_in: int
    kept: int
    reasons: Mapping[str, int]

    @property
    def dropped(self) -> int:
        """Return how many rows left at this stage."""
        return sum(self.reasons.values())


@dataclass(frozen=True, slots=True)
class StageFacts:
    """A difficulty stage: band, policy, and problems by pass rate (`RATES`)."""

    title: str
    policy: str
    min_correct: int
    max_pass_rate: float
    attempts: int
    rates: pl.DataFrame

    @property
    def max_correct(self) -> int:
        """Return the band's max correct attempts."""
        return int(self.max_pass_rate * self.attempts + 1e-9)

    @property
    def counts(self) -> list[int]:
        """Return how many problems were measured, never solved, always solved, and in the band."""
        judged, correct = pl.col("judged"), pl.col("correct")
        is_between = (correct >= self.min_correct) & (correct <= (judged * self.max_pass_rate + 1e-9).floor())
        filters = (pl.lit(True), correct == 0, correct == judged, pl.coalesce("foreseen_inside", is_between))
        measured = self.rates.filter(judged > 0)
        return [int(measured.filter(where)["problems"].sum()) for where in filters]

    @property
    def mean_of_set(self) -> float | None:
        """Return the mean pass rate of the set's problems."""
        of_set = self.rates.filter(pl.col("stands") & (pl.col("judged") > 0))
        total = float((of_set["pass_rate"] * of_set["problems"]).sum())
        return total / int(of_set["problems"].sum()) if of_set.height else None


FATES = pl.Schema(
    {
        "stands": pl.Boolean(),  # whether the problems are in the set
        "reason": pl.String(),  # why the first stage drops them; null if it keeps them
        "later": pl.String(),  # why the last stage drops them
        "problems": pl.Int64(),  # how many there are
    }
)


@dataclass(frozen=True, slots=True)
class StageComparison:
    """What the second stage changed, in problems.

    Args:
        never_solved, rescued, dropped: those that stage 1 never solved, in the set, and why the others are not.
        alone, both: those that stage 1 keeps, and those of them in the set.
        lost: problems of the set that stage 1 alone would drop, by reason.
    """

    never_solved: int
    rescued: int
    dropped: Mapping[str, int]
    alone: int
    both: int
    lost: Mapping[str, int]


def comparison_of(fates: pl.DataFrame) -> StageComparison:
    """Return what `FATES` come to."""
    never, kept = pl.col("reason").eq_missing(DropReason.NEVER_SOLVED.value), pl.col("reason").is_null()

    def count(where: pl.Expr) -> int:
        return int(fates.filter(where)["problems"].sum())

    def by_reason(where: pl.Expr, reason: pl.Expr) -> dict[str, int]:
        counts = fates.filter(where).group_by(reason.alias("reason")).agg(pl.col("problems").sum())
        return dict(counts.sort("reason").iter_rows())

    return StageComparison(
        never_solved=count(never),
        rescued=count(never & pl.col("stands")),
        dropped=by_reason(never & ~pl.col("stands"), pl.col("later").fill_null(DropReason.OVER_QUOTA.value)),
        alone=count(kept),
        both=count(kept & pl.col("stands")),
        lost=by_reason(~kept & pl.col("stands"), pl.col("reason")),
    )


def compare_stages(first: pl.DataFrame, last: pl.DataFrame, published: pl.Series) -> pl.DataFrame:
    """Count problems by both stages' decisions (`FATES`).

    Args:
        first, last: ``problem`` and ``reason`` of the same problems.
        published: the set's ids.
    """
    both = first.select("problem", "reason").join(last.select("problem", later="reason"), on="problem")
    stands = pl.col("problem").is_in(published.implode())
    return add_counts(FATES, [both.select(stands.alias("stands"), "reason", "later", problems=pl.lit(1))])


def add_counts(schema: pl.Schema, shards: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Sum ``problems`` over equal rows of all shards, sorted."""
    whole, keys = schema.to_frame(), schema.names()[:-1]
    for shard in shards:
        together = pl.concat([whole, shard.cast(schema)]).group_by(keys).agg(pl.col("problems").sum())
        whole = together.sort(keys, nulls_last=True)
    return whole


RATES = pl.Schema(
    {
        "stands": pl.Boolean(),  # whether the problems are in the set
        "judged": pl.Int32(),
        "correct": pl.Int32(),
        "pass_rate": pl.Float64(),  # of the set's problems only
        "foreseen_inside": pl.Boolean(),
        "problems": pl.Int64(),  # how many there are
    }
)
"""How many problems have which pass rate."""


@dataclass(frozen=True, slots=True)
class CardFacts:
    """Everything that a card states.

    Args:
        sources, origins: number of sources, and their section.
        sections: inserted after the funnel.
        disputed: counts by description.
        compared: if two stages judged.
    """

    name: str
    pretty_name: str
    description: str
    license: str
    version: str
    funnel: tuple[FunnelRow, ...]
    sources: int
    origins: tuple[Block, ...]
    curated: pl.LazyFrame
    stages: tuple[StageFacts, ...]
    verifier: str
    recipe_toml: str
    notes: tuple[str, ...] = ()
    sections: tuple[Section | str, ...] = ()
    disputed: Mapping[str, int] = field(default_factory=dict)
    suspicion: str = "most attempts agree on one answer that is not the reference"
    set_version: int | None = None
    changed: Mapping[str, int] = field(default_factory=dict)
    compared: StageComparison | None = None


def as_rates(measured: pl.DataFrame, published: pl.Series) -> pl.DataFrame:
    """Count problems by pass rate (`RATES`).

    Args:
        measured: `PASS_RATE` rows; ``foreseen_inside`` is null unless attempts stopped early.
        published: the set's ids.
    """
    if "foreseen_inside" not in measured.columns:
        measured = measured.with_columns(foreseen_inside=pl.lit(None, pl.Boolean))
    placed = measured.with_columns(stands=pl.col("problem").is_in(published.implode()))
    placed = placed.with_columns(pl.when("stands").then("pass_rate"), problems=pl.lit(1))
    return add_counts(RATES, [placed.select(RATES.names())])


def values_of(curated: pl.LazyFrame, column: str) -> list[str]:
    """Return a column's distinct values without null, sorted."""
    return sorted(curated.select(pl.col(column).drop_nulls().unique()).collect(engine="streaming").to_series())


def regraded_stages(funnel: Sequence[FunnelRow]) -> list[tuple[FunnelRow, FunnelRow]]:
    """Return (stage, previous stage) pairs that read the same rows."""
    pairs = zip(funnel[1:], funnel, strict=False)
    return [(row, before) for row, before in pairs if row.rows_in == before.rows_in != before.kept]
