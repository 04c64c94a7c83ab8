"""The tab of difficulty: pass rates per stage and version with the band, what moved, and whether the model holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from curation.config import Band
from curation.difficulty.refresh_forecast import Anchor, anchored
from curation.publish.versions import MOVED
from curation.storage.stages import read_table
from flows.page.charts import Column, Flow, flow, histogram
from flows.page.open_runs import curation_run
from flows.page.rendering import show
from flows.pipelines.by_recipe import pipeline_of
from flows.pipelines.refresh_parts import known_counts
from flows.pipelines.run_tables import verifier_of
from flows.publish.versions import Version, changes_of, decisions_of, stored_versions, summary
from flows.run.pipeline import read_result
from flows.run.run_folder import Run, difficulty_stage
from flows.run.stage import Kind, Results
from flows.stages.attempts import part_title

SHOWN_MOVES = 12
"""Problems that are named for each version, those whose pass rate changed most."""

IN_SET, NOT_THERE = "in the set", "not there"


@dataclass(frozen=True, slots=True)
class RatesPicture:
    """A histogram of pass rates, with the band that decided, where it is known."""

    title: str
    note: str
    columns: tuple[Column, ...]
    band: tuple[float, float] | None
    problems: int
    link: bool


@dataclass(frozen=True, slots=True)
class VersionMoves:
    """What moved from one version to the next."""

    version: Version
    summary: str
    picture: Flow
    problems: tuple[dict[str, Any], ...]


def pictures_of(run: Run) -> Iterator[RatesPicture]:
    """Yield the histogram of each difficulty stage, and of each version where there are several.

    Versions do not keep their band; that of the recipe is the newest one's.
    """
    verifier = verifier_of(run)
    root = Run(run.folder, run.recipe, run.recipe_folder)
    for stage in pipeline_of(run.recipe).stages_of(root):
        result = read_result(stage, root, verifier) if stage.kind is Kind.DECISION else None
        if result is not None:
            decided = read_table(result.folder, "decisions", ["pass_rate", "keep", "policy"])
            yield _picture(part_title(stage.part), decided, difficulty_stage(run.recipe, stage.part).band, link=True)
    versions = stored_versions(run.folder)
    for version in versions if len(versions) > 1 else []:
        decided = decisions_of(run.folder, version.number, ["pass_rate", "keep", "policy"])
        band = difficulty_stage(run.recipe, run.parts[-1]).band if version == versions[-1] else None
        yield _picture(f"Version {version.number}", decided, band)


def _picture(title: str, decided: pl.DataFrame, band: Band | None, *, link: bool = False) -> RatesPicture:
    if not decided.width:
        decided = pl.DataFrame(schema={"pass_rate": pl.Float64, "keep": pl.Boolean, "policy": pl.String})
    rated = decided.filter(pl.col("pass_rate").is_not_null())
    policies = decided["policy"].value_counts(sort=True)["policy"].to_list()
    note = f"by {', '.join(str(policy) for policy in policies[:3])}"
    columns = tuple(histogram(rated.select("pass_rate", "keep").rows()))
    shown = (band.min_correct / band.attempts, band.max_pass_rate) if band is not None else None
    return RatesPicture(title, note, columns, shown, rated.height, link)


def moves_of(run: Run) -> list[VersionMoves]:
    """Return what moved between each version and the one before, the newest first."""
    told = []
    for version in reversed(stored_versions(run.folder)[1:]):
        changes = changes_of(run.folder, version.number)
        states = changes.select(_state("old"), _state("new"), "change").with_columns(
            old=pl.when(pl.col("change") == "added").then(pl.lit(NOT_THERE)).otherwise("old"),
            new=pl.when(pl.col("change") == "removed").then(pl.lit(NOT_THERE)).otherwise("new"),
        )
        moves = {(old, new): rows for old, new, rows in states.group_by("old", "new").len().iter_rows()}
        moved = changes.filter(pl.col("change").is_in([change.value for change in MOVED])).with_columns(
            step=(pl.col("new_pass_rate") - pl.col("old_pass_rate")).abs()
        )
        problems = moved.sort("step", descending=True, nulls_last=True).head(SHOWN_MOVES).to_dicts()
        told.append(VersionMoves(version, summary(version), flow(moves), tuple(problems)))
    return told


def _state(side: str) -> pl.Expr:
    """Return where a problem stood in a version: in the set, or why it did not."""
    reason = pl.col(f"{side}_reason").str.replace_all("_", " ")
    return reason.fill_null(pl.lit(IN_SET)).alias(side)


def model_of(run: Run) -> Anchor | None:
    """Return the difficulty model fitted to all attempts of a run, with its calibration for the newest policy.

    None where fewer than two policies attempted its problems, or a stage is not finished.
    """
    root = Run(run.folder, run.recipe, run.recipe_folder)
    verifier = verifier_of(run)
    read = [read_result(stage, root, verifier) for stage in pipeline_of(run.recipe).stages_of(root)]
    results = Results(tuple(result for result in read if result is not None))
    if len(results.decisions) < len(run.parts):
        return None
    counts = known_counts(root, results)
    versions = stored_versions(run.folder)
    newest = versions[-1].policy if versions else str(counts["policy"][-1])
    others = counts.filter((pl.col("policy") != newest) & (pl.col("judged") > 0))
    return anchored(counts, newest, str(others["policy"][0])) if others.height else None


def _difficulty(request: Request) -> Response:
    shown, run = curation_run(request)
    return show(
        request,
        "difficulty.html",
        run=shown,
        tab="difficulty",
        pictures=list(pictures_of(run)),
        moves=moves_of(run),
        **_model(request, run),
    )


def _calibration(request: Request) -> Response:
    """Return the part on the difficulty model alone; it is fitted aside, and asked for until it is there."""
    shown, run = curation_run(request)
    return show(request, "calibration.html", run=shown, **_model(request, run))


def _model(request: Request, run: Run) -> dict[str, Any]:
    model = request.app.state.page.runs.model(run, model_of)
    calibration = model.anchor.calibration if model.anchor is not None else None
    return {
        "model": model,
        "anchor": model.anchor,
        "tenths": calibration.tenths.to_dicts() if calibration is not None else [],
        "lines": calibration.lines if calibration is not None else [],
    }


ROUTES = [
    Route("/r/{run}/difficulty", _difficulty),
    Route("/r/{run}/calibration", _calibration),
]
