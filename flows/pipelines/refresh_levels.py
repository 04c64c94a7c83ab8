"""Choose the levels of procedural sources from which a refresh draws new rows.

Invariant: the choice depends only on the version's inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from curation.config import Band
from curation.difficulty.refresh import REFRESH_CHOICE, RefreshCause
from curation.records import DropReason
from curation.sources.procedural import made_meta
from curation.storage.stages import read_json, read_shard, write_json
from flows.pipelines.refresh_anchor import AnchorResult
from flows.pipelines.refresh_parts import RefreshParts
from flows.run.run_folder import Run

LEVELS = "levels.json"
"""In a version's folder: each level's expected pass rate and drawn rows."""

DRAWN, RETIRED, WAITS = "drawn", "retired", "waits"
"""A level's expected pass rate is in the band, above or below it."""


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


def save_choices(place: Path, choices: Sequence[LevelChoice]) -> None:
    """Write the choices into a version's folder."""
    if choices:
        write_json(place / LEVELS, {"levels": [asdict(choice) for choice in choices]})


def stored_choices(place: Path) -> tuple[LevelChoice, ...]:
    """Return a version's choices of levels, if any."""
    return tuple(LevelChoice(**choice) for choice in (read_json(place / LEVELS) or {}).get("levels", ()))


def drawn_levels(
    run: Run, parts: RefreshParts, anchor: AnchorResult | None, band: Band
) -> tuple[list[LevelChoice], pl.DataFrame]:
    """Return the choice for each level of a source with a reserve, and the rows drawn as `REFRESH_CHOICE`."""
    made = {source.name: source.made for source in run.recipe.read_sources if source.made is not None}
    names = [name for name, how in made.items() if how.reserve_per_level]
    if not names:
        return [], REFRESH_CHOICE.to_frame()
    rows = pl.concat([_rows_of_shard(parts, index, names, anchor) for index in range(len(parts))])
    choices, drawn = [], [REFRESH_CHOICE.to_frame()]
    for (source, level), own in rows.sort("seed").group_by("source", "level", maintain_order=True):
        waiting, rates = own.filter("waits"), own["rate"].drop_nulls().to_list()
        rates += own["expected"].drop_nulls().head(1).to_list()
        expected = sum(rates) / max(1, len(rates))
        status = _status(expected, band)
        taken = waiting.head(made[source].rows_per_level if status == DRAWN else 0)
        choices.append(LevelChoice(source, level, round(expected, 4), status, taken.height, waiting.height))
        drawn.append(taken.select("problem", why=pl.lit(RefreshCause.DRAWN.value)))
    return sorted(choices, key=lambda choice: (choice.source, choice.level)), pl.concat(drawn)


def _status(expected: float, band: Band) -> str:
    if expected > band.max_pass_rate:
        return RETIRED
    return DRAWN if expected * band.attempts >= band.min_correct else WAITS


def _rows_of_shard(parts: RefreshParts, index: int, made: list[str], anchor: AnchorResult | None) -> pl.DataFrame:
    """Return a shard's procedural rows: problem, source, level, seed, waits, rate, expected.

    ``rate`` is measured; ``expected`` is the item response model's, for reserve.
    """
    problems = read_shard(parts.results.problems.folder, "kept", index, ["id", "source", "meta"])
    names = problems["id"]
    decided = parts.version_of_shard(parts.number, ["problem", "reason", "correct", "judged"], index)
    measured, expected = decided, pl.DataFrame(schema={"problem": pl.String, "expected": pl.Float64})
    if anchor is not None:
        mean = pl.col("correct") / (pl.col("correct") + pl.col("other"))
        expected = anchor.priors(index, names).select("problem", expected=mean)
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
