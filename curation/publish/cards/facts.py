"""A data card's facts, and derived figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from curation.config import Band
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
    band: Band
    rates: pl.DataFrame

    @property
    def max_correct(self) -> int:
        """Return the band's max correct attempts."""
        return int(self.band.max_pass_rate * self.band.attempts + 1e-9)

    @property
    def counts(self) -> list[int]:
        """Return how many problems were measured, never solved, always solved, and in the band."""
        judged, correct = pl.col("judged"), pl.col("correct")
        is_between = (correct >= self.band.min_correct) & (correct <= (judged * self.band.max_pass_rate + 1e-9).floor())
        filters = (pl.lit(True), correct == 0, correct == judged, pl.coalesce("foreseen_inside", is_between))
        measured = self.rates.filter(judged > 0)
        return [int(measured.filter(where)["problems"].sum()) for where in filters]

    @property
    def mean_of_set(self) -> float | None:
        """Return the mean pass rate of the set's problems."""
        of_set = self.rates.filter(pl.col("stands") & (pl.col("judged") > 0))
        total = float((of_set["pass_rate"] * of_set["problems"]).sum())
        return total / int(of_set["problems"].sum()) if of_set.height else None


def compare_stages(shards: Iterable[tuple[pl.DataFrame, pl.DataFrame, pl.Series]]) -> dict[str, Any]:
    """Count what the last stage changed, in problems.

    Args:
        shards: the first and last stages' ``problem`` and ``reason`` of the same problems, and the set's ids.
    """
    fates = Counter[tuple[bool, str | None, str | None]]()
    for first, last, published in shards:
        both = first.select("problem", "reason").join(last.select("problem", later="reason"), on="problem")
        fates.update(both.select(pl.col("problem").is_in(published.implode()), "reason", "later").iter_rows())
    never, alone, dropped, lost = (Counter[Any]() for _ in range(4))
    for (is_in_set, reason, later), number in fates.items():
        if reason is None:
            alone[is_in_set] += number
        elif is_in_set:
            lost[reason] += number
        if reason == DropReason.NEVER_SOLVED.value:
            never[is_in_set] += number
            if not is_in_set:
                dropped[later or DropReason.OVER_QUOTA.value] += number
    return {
        "never_solved": never.total(),
        "rescued": never[True],  # of these in the set
        "dropped": dropped,  # why the others are not
        "alone": alone.total(),  # those that stage 1 keeps
        "both": alone[True],  # of these in the set
        "lost": lost,  # problems of the set that stage 1 alone drops, by reason
    }


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
        sources, origins: their number, and their section.
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
    origins: str
    curated: pl.LazyFrame
    stages: tuple[StageFacts, ...]
    verifier: str
    recipe_toml: str
    notes: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    disputed: Mapping[str, int] = field(default_factory=dict)
    suspicion: str = "most attempts agree on one answer that is not the reference"
    set_version: int | None = None
    changed: Mapping[str, int] = field(default_factory=dict)
    compared: Mapping[str, Any] | None = None


def count_rates(shards: Iterable[tuple[pl.DataFrame, pl.Series]]) -> pl.DataFrame:
    """Count problems by pass rate (`RATES`).

    Args:
        shards: `PASS_RATE` rows with ``foreseen_inside``, null unless attempts stopped early, and the set's ids.
    """
    rates, keys = RATES.to_frame(), RATES.names()[:-1]
    for measured, published in shards:
        placed = measured.with_columns(stands=pl.col("problem").is_in(published.implode()), problems=pl.lit(1))
        placed = placed.with_columns(pl.when("stands").then("pass_rate")).select(RATES.names()).cast(RATES)
        rates = pl.concat([rates, placed]).group_by(keys).agg(pl.col("problems").sum())
    return rates.sort(keys, nulls_last=True)


def values_of(curated: pl.LazyFrame, column: str) -> list[str]:
    """Return a column's distinct values without null, sorted."""
    return sorted(curated.select(pl.col(column).drop_nulls().unique()).collect(engine="streaming").to_series())


def regraded_stages(funnel: Sequence[FunnelRow]) -> list[tuple[FunnelRow, FunnelRow]]:
    """Return (stage, previous stage) pairs that read the same rows."""
    pairs = zip(funnel[1:], funnel, strict=False)
    return [(row, before) for row, before in pairs if row.rows_in == before.rows_in != before.kept]
