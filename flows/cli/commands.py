"""Implements `goldilocks run`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from curation.public_urls import public_text
from flows.cli.status import show_status
from flows.pipelines.by_recipe import check_inputs, curate, pipeline_of
from flows.run.pipeline import read_result
from flows.run.policies import offline
from flows.run.recipe import recipe_warnings
from flows.run.run_folder import Run, new_run
from flows.run.terminal import SafeConsole
from flows.serve.server import user_api


def run_recipe(
    path: Path,
    overrides: Sequence[str],
    out: Path | None,
    *,
    dry: bool = False,
    as_json: bool = False,
    no_model: bool = False,
) -> Path | None:
    """Run a recipe and return the set's folder, or None after a dry run.

    Args:
        no_model: ask no model; such a run is no flow run of Prefect.
    """
    run = new_run(path, overrides, out)
    run.check_owner()
    for line in recipe_warnings(run.recipe, run.recipe_folder):
        print(f"warning: {line}", file=sys.stderr)
    if dry:
        _print_plan(run)
        return None
    if no_model:
        with offline():
            curated = curate(path.absolute(), run.folder, list(overrides))
    else:
        curated = _curate(run, path.absolute(), list(overrides))
    show_status(run.folder, as_json=as_json)
    if not as_json:
        SafeConsole().print(f"\ncurated set and card: {curated / 'README.md'}")
    return curated


def _curate(run: Run, path: Path, overrides: list[str]) -> Path:
    """Run the pipeline, as a flow run if the user has a Prefect API."""
    if user_api() is None:
        return curate(path, run.folder, overrides)
    from flows.loop import CURATION

    curated = CURATION[run.recipe.flow].with_options(retries=0)(path, run.folder, overrides)
    assert curated is not None, "only a deployment's run is passed over"
    return curated


def _print_plan(run: Run) -> None:
    recipe = run.recipe
    console = SafeConsole()
    console.print(f"{recipe.name}: would run {recipe.flow} in {run.folder}")
    check_inputs(run)
    stages = pipeline_of(recipe).stages_of(run)
    for line in (line for stage in stages for line in stage.describe(run)):
        console.print(f"  {public_text(line)}")
    finished = [stage.name for stage in stages if not stage.by_verifier and read_result(stage, run) is not None]
    console.print(
        f"  finished there, and reused where nothing it is made from has changed: {', '.join(finished) or 'nothing'}"
    )
