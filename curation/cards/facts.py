"""What a card is made from, and what follows from it by arithmetic alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from curation.cards.words import capital


@dataclass(frozen=True, slots=True)
class FunnelRow:
    """One stage of the funnel; ``rows_in == kept + sum(reasons.values())``.

    Example: ``FunnelRow("duplicates", "Duplicates", 700, 688, {"duplicate": 12})``
    """

    stage: str
    title: str
    rows_in: int
    kept: int
    reasons: Mapping[str, int]

    @property
    def dropped(self) -> int:
        """Rows that left at this stage."""
        return sum(self.reasons.values())


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Where rows came from, and how many of them are left."""

    name: str
    url: str | None
    license: str
    read: int
    curated: int


@dataclass(frozen=True, slots=True)
class BenchmarkFacts:
    """A benchmark that problems were compared with: how many of them overlapped, in all and by method."""

    name: str
    license: str
    problems: int
    by_method: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """What a card of a code set says of its tests. ``power`` counts known wrong solutions of the kept problems.

    ``corrected`` and ``discarded`` are tests of the sources; ``made`` were generated, ``tried`` so many inputs,
    of which the packages' own validators ``refused`` some.
    """

    tests_read: int
    tests: int
    corrected: int
    discarded: int
    made: int
    tried: int
    refused: int
    runs: int
    weakly_tested: int
    wrong: int
    caught_given: int
    caught: int
    languages: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CardFacts:
    """Everything a card says.

    ``rates`` holds a `PASS_RATE` frame per stage, ``bands`` the least correct attempts, the highest pass rate and the
    attempts of that stage, ``policies`` who answered there; all three have the same keys, in the order of the stages.
    The funnel may call such a stage by its key or by its key, a dot and more: ``stage1``, ``stage1.decisions``.
    ``notes`` are sentences for the section on limits; ``benchmarks`` are those that the recipe names; ``disputed``
    counts the disputed labels by what is disputed, in words. ``set_version`` is the set's own version, and ``changed``
    counts the problems that changed against the one before, in words.
    """

    name: str
    pretty_name: str
    description: str
    license: str
    version: str
    created: str | None
    funnel: tuple[FunnelRow, ...]
    sources: tuple[SourceFacts, ...]
    curated: pl.DataFrame
    rates: Mapping[str, pl.DataFrame]
    bands: Mapping[str, tuple[int, float, int]]
    policies: Mapping[str, str]
    verifier: str
    recipe_toml: str
    notes: tuple[str, ...] = ()
    benchmarks: tuple[BenchmarkFacts, ...] = ()
    disputed: Mapping[str, int] = field(default_factory=dict)
    code: CodeFacts | None = None
    set_version: int | None = None
    changed: Mapping[str, int] = field(default_factory=dict)


def most_correct(band: tuple[int, float, int]) -> int:
    """The most correct attempts that a band keeps."""
    return int(band[1] * band[2] + 1e-9)


def regraded(funnel: Sequence[FunnelRow]) -> list[tuple[FunnelRow, FunnelRow]]:
    """(stage, stage before it) where a stage went back to what the stage before it had read."""
    pairs = zip(funnel[1:], funnel, strict=False)
    return [(row, before) for row, before in pairs if row.rows_in == before.rows_in != before.kept]


def stage_title(facts: CardFacts, stage: str) -> str:
    """The funnel's title for a key of ``rates``; the funnel may call the stage ``stage1`` or ``stage1.decisions``."""
    found = (row.title for row in facts.funnel if row.stage.partition(".")[0] == stage)
    return capital(next(found, stage))
