"""The facts of a data card, and what follows from them by arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from curation.publish.pages import Section
from curation.records import DropReason


@dataclass(frozen=True, slots=True)
class FunnelRow:
    """One stage of the funnel; ``rows_in == kept + sum(reasons.values())``."""

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
class SourceFacts:
    """Rows of a source, before and after selection and merging.

    ``digest`` is a hash of the content; ``left_out``: nothing was read; ``made`` is empty for collected rows.
    """

    name: str
    url: str | None
    license: str
    read: int
    curated: int
    merged: int = 0
    state: str | None = None
    digest: str | None = None
    seen: int = 0
    which: str = ""
    left_out: bool = False
    made: str = ""


@dataclass(frozen=True, slots=True)
class StageFacts:
    """A difficulty stage: its band, the judge, and the number of problems by pass rate (`RATES`)."""

    title: str
    policy: str
    min_correct: int
    max_pass_rate: float
    attempts: int
    rates: pl.DataFrame

    @property
    def max_correct(self) -> int:
        """Return the highest number of correct attempts in the band."""
        return int(self.max_pass_rate * self.attempts + 1e-9)


@dataclass(frozen=True, slots=True)
class StageComparison:
    """What the second stage changed.

    Attributes:
        never_solved: problems that the first stage dropped as never solved.
        outcomes: their drop reasons in the second stage; "" if kept.
        alone: problems that the first stage alone would keep.
        both: those of them in the set.
        lost: those of the set that the first stage would lose, by reason.
    """

    never_solved: int
    outcomes: Mapping[str, int]
    alone: int
    both: int
    lost: Mapping[str, int]

    @property
    def rescued(self) -> int:
        """Return how many problems of the set the first stage never solved."""
        return self.outcomes.get("", 0)

    @property
    def dropped(self) -> Mapping[str, int]:
        """Return why the second stage dropped problems that the first never solved."""
        return {reason: count for reason, count in self.outcomes.items() if reason}


def compare_stages(first: pl.DataFrame, last: pl.DataFrame, published: pl.Series) -> StageComparison:
    """Compare the decisions of the first stage with those of the last.

    Args:
        first, last: ``problem``, ``keep`` and ``reason`` of the same problems.
        published: ids of the set.
    """
    stands = pl.col("problem").is_in(published.implode())
    both = first.select("problem", "keep", "reason").join(
        last.select("problem", later="reason").with_columns(stands=stands), on="problem"
    )
    never = both.filter(pl.col("reason") == DropReason.NEVER_SOLVED.value)
    later = pl.when("stands").then(pl.lit("")).otherwise(pl.col("later").fill_null(DropReason.OVER_QUOTA.value))
    lost = both.filter(pl.col("stands") & ~pl.col("keep"))
    alone = both.filter("keep")
    return StageComparison(
        never.height,
        dict(never.group_by(later.alias("fate")).len().sort("fate").iter_rows()),
        alone.height,
        int(alone["stands"].sum()),
        dict(lost.group_by("reason").len().sort("reason").iter_rows()),
    )


def add_comparisons(shards: Iterable[StageComparison]) -> StageComparison:
    """Return the sum of the shards' comparisons."""
    outcomes, lost = Counter[str](), Counter[str]()
    never = alone = both = 0
    for shard in shards:
        never, alone, both = never + shard.never_solved, alone + shard.alone, both + shard.both
        outcomes.update(shard.outcomes)
        lost.update(shard.lost)
    return StageComparison(never, dict(sorted(outcomes.items())), alone, both, dict(sorted(lost.items())))


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

_SAME_RATE = [name for name in RATES.names() if name != "problems"]


@dataclass(frozen=True, slots=True)
class CardFacts:
    """Everything that a card states.

    Args:
        sections: inserted after the funnel.
        disputed: numbers of disputed labels, by description.
        suspicion: when a label is suspected.
        compared: if two stages judged.
    """

    name: str
    pretty_name: str
    description: str
    license: str
    version: str
    funnel: tuple[FunnelRow, ...]
    sources: tuple[SourceFacts, ...]
    curated: pl.LazyFrame
    stages: tuple[StageFacts, ...]
    verifier: str
    recipe_toml: str
    notes: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    disputed: Mapping[str, int] = field(default_factory=dict)
    suspicion: str = "most attempts agree on one answer that is not the reference"
    set_version: int | None = None
    changed: Mapping[str, int] = field(default_factory=dict)
    compared: StageComparison | None = None


def as_rates(measured: pl.DataFrame, published: pl.Series) -> pl.DataFrame:
    """Return the number of problems by pass rate (`RATES`).

    Args:
        measured: `PASS_RATE` rows; ``foreseen_inside`` is null unless attempts stopped early.
        published: ids of the set.
    """
    if "foreseen_inside" not in measured.columns:
        measured = measured.with_columns(foreseen_inside=pl.lit(None, pl.Boolean))
    placed = measured.with_columns(stands=pl.col("problem").is_in(published.implode()))
    placed = placed.with_columns(pl.when("stands").then("pass_rate"), problems=pl.lit(1))
    return add_rates([placed.select(RATES.names()).cast(RATES)])


def add_rates(shards: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the sums of pass rate counts over shards (`RATES`)."""
    whole = RATES.to_frame()
    for shard in shards:
        together = pl.concat([whole, shard]).group_by(_SAME_RATE).agg(pl.col("problems").sum())
        whole = together.sort(_SAME_RATE, nulls_last=True).select(RATES.names())
    return whole


def values_of(curated: pl.LazyFrame, column: str) -> list[str]:
    """Return the distinct values of a column, sorted, without null."""
    return sorted(curated.select(pl.col(column).drop_nulls().unique()).collect(engine="streaming").to_series())


def is_regraded(funnel: Sequence[FunnelRow]) -> list[tuple[FunnelRow, FunnelRow]]:
    """Return (stage, previous stage) if a stage read the same rows as the previous one."""
    pairs = zip(funnel[1:], funnel, strict=False)
    return [(row, before) for row, before in pairs if row.rows_in == before.rows_in != before.kept]
