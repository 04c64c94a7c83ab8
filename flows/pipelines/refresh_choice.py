"""Choose what a refresh judges again: the anchor, what it makes uncertain, and new rows of procedural sources' levels.

Invariant: the choice depends only on the version's inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import polars as pl

from curation.config import Band
from curation.difficulty.early_stopping import AttemptOutcome, StoppingRule
from curation.difficulty.refresh import REFRESH_CHOICE, RefreshCause
from curation.difficulty.refresh_forecast import (
    FEW,
    Anchor,
    RefreshForecast,
    anchor_lines,
    anchored,
    foresee_refresh,
)
from curation.records import DropReason
from curation.sources.procedural import made_meta
from curation.storage.stages import read_shard, write_json
from flows.pipelines.refresh_inputs import COUNTS, RefreshParts

FAR_WEAKER = 2.0
"""Logits below the set's policy from which a policy counts as broken."""

LEVELS = "levels.json"
"""In a version's folder: each level's expected pass rate and drawn rows."""

DRAWN, RETIRED, WAITS = "drawn", "retired", "waits"
"""A level's expected pass rate is in the band, above or below it."""


@dataclass(frozen=True, slots=True)
class AnchorResult:
    """What the anchor shows, and what follows."""

    anchor: Anchor
    forecast: RefreshForecast

    @property
    def lines(self) -> list[str]:
        """Return it in words."""
        return [*anchor_lines(self.anchor), self.forecast.correction.sentence, self.forecast.sentence]

    @property
    def is_far_weaker(self) -> bool:
        """Return whether the policy is too weak to judge problems or labels."""
        return self.anchor.shift is not None and self.anchor.shift < -FAR_WEAKER

    @property
    def gives_priors(self) -> bool:
        """Return whether the anchor confirms the priors."""
        return self.forecast.replay.holds

    def priors(self, shard: int, problems: pl.Series) -> pl.DataFrame:
        """Return the stopping priors of a shard's problems."""
        return self.forecast.shared.priors_of(shard, problems, self.forecast.threshold)


def anchor_result(
    parts: RefreshParts, own: pl.DataFrame, attempts: Mapping[str, Sequence[AttemptOutcome]], rule: StoppingRule
) -> AnchorResult | None:
    """Return the anchor's results; None if the verifier failed on all of it.

    Args:
        own: the policy's counts on the anchor.
        attempts: the anchor's, up to their stop by ``rule``.
    """
    parts = replace(parts, own=own.select(COUNTS))
    anchor = anchored(_met_counts(parts), parts.policy, parts.newest.policy)
    if anchor is None:
        return None
    return AnchorResult(anchor, foresee_refresh(anchor, parts, attempts, rule, parts.run.recipe.refresh.error_rate))


def _met_counts(parts: RefreshParts) -> pl.DataFrame:
    """Return counts on problems that the policy tried; on all if fewer than `FEW`."""
    met, tried = [], 0
    for part in parts:
        names = part.counts.filter((pl.col("policy") == parts.policy) & (pl.col("judged") > 0)).select("problem")
        met.append(part.counts.join(names, on="problem", how="semi", maintain_order="left"))
        tried += names["problem"].n_unique()
    return pl.concat(met if tried >= FEW else [part.counts for part in parts])


@dataclass(frozen=True, slots=True)
class LevelChoice:
    """A refresh's choice for a level; ``reserve`` counts unmeasured rows before the draw."""

    source: str
    level: int
    expected: float
    status: str
    drawn: int
    reserve: int

    @property
    def sentence(self) -> str:
        """Return the choice in words."""
        what = f"{self.drawn} of {self.reserve} rows in reserve drawn" if self.status == DRAWN else self.status
        return f"{self.source}, level {self.level}: expected pass rate {self.expected:.2f}, {what}"


def drawn_levels(parts: RefreshParts, anchor: AnchorResult | None, band: Band) -> pl.DataFrame:
    """Return the rows drawn of sources with a reserve as `REFRESH_CHOICE`, and write the levels' choices."""
    made = {source.name: source.made for source in parts.run.recipe.read_sources if source.made is not None}
    names = [name for name, how in made.items() if how.reserve_per_level]
    if not names:
        return REFRESH_CHOICE.to_frame()
    rows = pl.concat([_rows_of_levels(parts, index, names, anchor) for index in range(len(parts))])
    choices, drawn = [], [REFRESH_CHOICE.to_frame()]
    for (source, level), own in rows.sort("seed").group_by("source", "level", maintain_order=True):
        waiting, rates = own.filter("waits"), own["rate"].drop_nulls().to_list()
        rates += own["expected"].drop_nulls().head(1).to_list()
        expected = sum(rates) / max(1, len(rates))
        status = DRAWN if expected * band.attempts >= band.min_correct else WAITS
        status = RETIRED if expected > band.max_pass_rate else status
        taken = waiting.head(made[source].rows_per_level if status == DRAWN else 0)
        choices.append(LevelChoice(source, level, round(expected, 4), status, taken.height, waiting.height))
        drawn.append(taken.select("problem", why=pl.lit(RefreshCause.DRAWN.value)))
    choices.sort(key=lambda choice: (choice.source, choice.level))
    if choices:
        write_json(parts.run.place / LEVELS, {"levels": [asdict(choice) for choice in choices]})
    return pl.concat(drawn)


def _rows_of_levels(parts: RefreshParts, index: int, made: list[str], anchor: AnchorResult | None) -> pl.DataFrame:
    """Return a shard's procedural rows: problem, source, level, seed, waits, rate, expected.

    ``rate`` is measured; ``expected`` is the item response model's, for reserve.
    """
    problems = read_shard(parts.results.problems.folder, "kept", index, ["id", "source", "meta"])
    decided = parts.decisions(index, ("problem", "reason", "correct", "judged"))
    measured, expected = decided, pl.DataFrame(schema={"problem": pl.String, "expected": pl.Float64})
    if anchor is not None:
        mean = pl.col("correct") / (pl.col("correct") + pl.col("other"))
        expected = anchor.priors(index, problems["id"]).select("problem", expected=mean)
        measured = anchor.anchor.counts.filter(pl.col("policy") == anchor.anchor.policy)
    rate = pl.col("correct") / pl.col("judged")
    measured = measured.filter(pl.col("judged") > 0).select("problem", rate=rate)
    rows = problems.filter(pl.col("source").is_in(made)).with_columns(made_meta(made)).unnest("made")
    return (
        rows.select("source", "level", "seed", problem="id")
        .join(decided.select("problem", "reason"), on="problem", how="inner", maintain_order="left")
        .join(measured, on="problem", how="left", maintain_order="left")
        .join(expected, on="problem", how="left", maintain_order="left")
        .with_columns(waits=pl.col("reason").eq_missing(DropReason.RESERVED.value))
        .with_columns(expected=pl.when("waits").then("expected"))
    )
