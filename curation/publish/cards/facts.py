"""What a card is made from, and what follows from it by arithmetic alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from curation.publish.cards.words import capital
from curation.records import DropReason


@dataclass(frozen=True, slots=True)
class FunnelRow:
    """One stage of the funnel; ``rows_in == kept + sum(reasons.values())``.

    Example: ``FunnelRow("exact_dedup", "Duplicates", 700, 688, {"duplicate": 12})``
    """

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
    """Where rows came from, how many of them are left, and how many are merged into a row that is left.

    ``state`` is the commit or revision and ``digest`` the hash of what was read; ``seen`` counts the rows that were
    looked at before `where`, quota and join, ``which`` says these in words; ``left_out``: nothing was read at all.
    ``made`` states generator, levels and rows of a source whose rows are made, and is empty where they are collected.
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
class BenchmarkFacts:
    """A benchmark of the decontamination: how many problems were contaminated with it, in all and by method.

    ``templates`` counts those that are made from one of its templates with other figures.
    """

    name: str
    license: str
    problems: int
    by_method: Mapping[str, int]
    templates: int = 0


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """What a card of a code set says of its tests. ``power`` counts known wrong solutions of the kept problems.

    ``corrected`` and ``discarded`` are tests of the sources, ``refused_given`` of the latter those whose input a
    validator refuses; ``generated`` were made of ``tried`` inputs, of which validators ``refused`` some. ``vouched``
    counts the kept problems by who speaks for their inputs, empty where no one does; ``unvouched`` are the generated
    tests of those, ``unvouched_model`` such of them as a model's programs wrote, and ``votes`` how many solutions had
    to agree on each where statement or given inputs tell what an input holds, and elsewhere; ``aside`` the problems
    that have a validator which is not believed. ``older_standards`` counts the solutions in C++ of the kept problems
    that only an older standard than the usual one accepts, by standard.
    """

    tests_read: int
    tests: int
    corrected: int
    discarded: int
    generated: int
    tried: int
    refused: int
    refused_given: int
    vouched: Mapping[str, int]
    unvouched: int
    unvouched_model: int
    votes: tuple[int, int]
    aside: int
    runs: int
    weakly_tested: int
    wrong: int
    caught_given: int
    caught: int
    languages: Mapping[str, int]
    older_standards: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TranslationFacts:
    """What a card says of the translations of a set.

    ``later`` were accepted at a second or third try; ``languages`` counts the set's translations; ``said`` counts what
    the reader said over all tries; ``refused`` counts what was wrong with the last tries.
    """

    drawn: int
    translated: int
    later: int
    languages: Mapping[str, int]
    said: Mapping[str, int]
    refused: Mapping[str, int]
    is_measured: bool


@dataclass(frozen=True, slots=True)
class StageComparison:
    """What the second stage changed. ``outcomes`` sums to ``never_solved``; reasons are those of `DropReason`.

    never_solved   problems that the first stage dropped as never solved
    outcomes       what became of these: stage 2's reasons, "" where they stand in the set
    alone          problems that the first stage alone would have kept
    both           those of them that stand in the set
    lost           problems of the set that the first stage alone would have lost, by its reason
    """

    never_solved: int
    outcomes: Mapping[str, int]
    alone: int
    both: int
    lost: Mapping[str, int]

    @property
    def rescued(self) -> int:
        """Return how many problems the first stage never solved and stand in the set."""
        return self.outcomes.get("", 0)

    @property
    def dropped(self) -> Mapping[str, int]:
        """Return why the others that the first stage never solved are not in the set."""
        return {reason: count for reason, count in self.outcomes.items() if reason}


def compare_stages(first: pl.DataFrame, last: pl.DataFrame, published: pl.Series) -> StageComparison:
    """Compare the decisions of the first stage with those of the last.

    Args:
        first, last: frames with ``problem``, ``keep`` and ``reason``, one row per problem, the same problems in both.
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


def add_comparisons(parts: Iterable[StageComparison]) -> StageComparison:
    """Return the comparison of all problems, from those of parts of them."""
    outcomes, lost = Counter[str](), Counter[str]()
    never = alone = both = 0
    for part in parts:
        never, alone, both = never + part.never_solved, alone + part.alone, both + part.both
        outcomes.update(part.outcomes)
        lost.update(part.lost)
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
    """Everything a card says.

    ``curated``, in the columns of a curated set, is read where it is used, for it may be large. ``rates`` holds a frame
    per stage (`RATES`), ``bands`` the least correct attempts, the highest pass rate and the attempts of that stage,
    ``policies`` who answered there; all three have the same keys, in the order of the stages.
    The funnel may call such a stage by its key or by its key, a dot and more: ``stage1``, ``stage1.decisions``.
    ``notes`` are sentences for the section on limits; ``benchmarks`` are those that the recipe names; ``disputed``
    counts the disputed labels by what is disputed, in words; ``suspicion`` says when a label is suspected.
    ``set_version`` is the set's own version, and ``changed`` counts the problems that changed against the one before,
    in words. ``compared`` is there where two stages judged.
    """

    name: str
    pretty_name: str
    description: str
    license: str
    version: str
    created: str | None
    funnel: tuple[FunnelRow, ...]
    sources: tuple[SourceFacts, ...]
    curated: pl.LazyFrame
    rates: Mapping[str, pl.DataFrame]
    bands: Mapping[str, tuple[int, float, int]]
    policies: Mapping[str, str]
    verifier: str
    recipe_toml: str
    notes: tuple[str, ...] = ()
    benchmarks: tuple[BenchmarkFacts, ...] = ()
    disputed: Mapping[str, int] = field(default_factory=dict)
    suspicion: str = "most attempts agree on one answer that is not the reference"
    code: CodeFacts | None = None
    translations: TranslationFacts | None = None
    set_version: int | None = None
    changed: Mapping[str, int] = field(default_factory=dict)
    compared: StageComparison | None = None


def as_rates(measured: pl.DataFrame, published: pl.Series) -> pl.DataFrame:
    """Return how many problems of a stage, or of a part of it, have which pass rate, in the `RATES` schema.

    Args:
        measured: `PASS_RATE` rows; ``foreseen_inside`` states whether a problem is in the band that stopped before all
            attempts, and is null where all were made.
        published: ids of the set.
    """
    if "foreseen_inside" not in measured.columns:
        measured = measured.with_columns(foreseen_inside=pl.lit(None, pl.Boolean))
    told = measured.with_columns(stands=pl.col("problem").is_in(published.implode()))
    told = told.with_columns(pl.when("stands").then("pass_rate"), problems=pl.lit(1))
    return add_rates([told.select(RATES.names()).cast(RATES)])


def add_rates(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the pass rates of all problems, from those of parts of them (`RATES`)."""
    whole = RATES.to_frame()
    for part in parts:
        together = pl.concat([whole, part]).group_by(_SAME_RATE).agg(pl.col("problems").sum())
        whole = together.sort(_SAME_RATE, nulls_last=True).select(RATES.names())
    return whole


def values_of(curated: pl.LazyFrame, column: str) -> list[str]:
    """Return the different values of a column, sorted, without null."""
    return sorted(curated.select(pl.col(column).drop_nulls().unique()).collect(engine="streaming").to_series())


def most_correct(band: tuple[int, float, int]) -> int:
    """Return the most correct attempts that a band keeps."""
    return int(band[1] * band[2] + 1e-9)


def is_regraded(funnel: Sequence[FunnelRow]) -> list[tuple[FunnelRow, FunnelRow]]:
    """Return (stage, stage before it) where a stage went back to what the stage before it had read."""
    pairs = zip(funnel[1:], funnel, strict=False)
    return [(row, before) for row, before in pairs if row.rows_in == before.rows_in != before.kept]


def stage_title(facts: CardFacts, stage: str) -> str:
    """Return the funnel's title for a key of ``rates``; the funnel may call the stage ``stage1`` or
    ``stage1.decisions``.
    """
    titles = (row.title for row in facts.funnel if row.stage.partition(".")[0] == stage)
    return capital(next(titles, stage))
