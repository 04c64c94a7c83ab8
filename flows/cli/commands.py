"""Implements `goldilocks run` and `refresh`: as flow runs, if the user has a Prefect API."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from curation.public_urls import public_text
from flows.cli.status import show_status
from flows.pipelines.by_recipe import check_inputs, curate, curate_only, pipeline_of
from flows.pipelines.refresh import RefreshResult, refresh, summarise_refresh
from flows.pipelines.run_tables import verifier_of
from flows.run.pipeline import read_result
from flows.run.policies import offline
from flows.run.recipe import recipe_warnings
from flows.run.run_folder import new_run
from flows.run.terminal import SafeConsole
from flows.serve.server import user_api


def run_recipe(
    path: Path,
    overrides: Sequence[str],
    out: Path | None,
    *,
    dry: bool = False,
    no_model: bool = False,
    only: str | None = None,
) -> Path | None:
    """Run a recipe and return the set's folder; None if no set was made.

    Args:
        no_model: ask no model; such a run is no flow run of Prefect.
        only: the stage to compute, also without Prefect.
    """
    run = new_run(path, overrides, out)
    run.check_owner()
    for line in recipe_warnings(run.recipe, run.recipe_folder):
        print(f"warning: {line}", file=sys.stderr)
    if dry:
        console = SafeConsole()
        console.print(f"{run.recipe.name}: would run {run.recipe.flow} in {run.folder}")
        check_inputs(run)
        stages = pipeline_of(run.recipe).stages_of(run)
        for line in (line for stage in stages for line in stage.describe(run)):
            console.print(f"  {public_text(line)}")
        finished = [stage.name for stage in stages if read_result(stage, run, verifier_of(run)) is not None]
        reused = "finished stages, reused unless their inputs have changed"
        console.print(f"  {reused}: {', '.join(finished) or 'nothing'}")
        return None
    curated: Path | None
    if no_model or only is not None or user_api() is None:
        with offline() if no_model else nullcontext():
            given = path.absolute(), run.folder, list(overrides)
            curated = curate(*given) if only is None else curate_only(only, *given)
    else:
        from flows.loop import CURATION

        flow = CURATION[run.recipe.flow].with_options(retries=0)
        curated = flow(path.absolute(), run.folder, list(overrides))
        assert curated is not None, "only a deployment's run is passed over"
    show_status(run.folder)
    if curated is not None:
        SafeConsole().print(f"\ncurated set and card: {curated / 'README.md'}")
    return curated


def refresh_run(folder: Path, policy: Path, attempts: Path | None = None, *, accept: bool = False) -> RefreshResult:
    """Refresh a run's set and print the result."""
    result: RefreshResult | None = None
    if user_api() is not None:
        from flows.refresh import refresh as refresh_flow

        made = refresh_flow.with_options(retries=0)(folder, policy, attempts, accept=accept)
        assert made is None or isinstance(made, RefreshResult)  # a state is what a deployment's run returns
        result = made
    if result is None:  # without a Prefect API, or the flow saw that this checkpoint was used before
        result = refresh(folder, policy, attempts, accept=accept)
    console = SafeConsole()
    for line in summarise_refresh(result):
        console.print(line)
    return result
