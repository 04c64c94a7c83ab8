"""Curation: a recipe's pipeline from raw rows to a published set; `flows.pipelines.under_prefect` makes it a flow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flows.pipelines.by_recipe import pipeline_of
from flows.publish.curated_set import publish, published_mark
from flows.run import mirroring, monitoring
from flows.run.history import recorded
from flows.run.observer import current_observer
from flows.run.pipeline import run_pipeline
from flows.run.run_folder import new_run


def curate(recipe: Path, out: Path, overrides: Sequence[str] = ()) -> Path:
    """Run the recipe's pipeline, publish the set, show a new one to who watches, and return its folder.

    Args:
        recipe: the recipe's TOML file.
        out: the run folder; what is finished there is not done again.
        overrides: settings changed, as ``key=value``.
    """
    run = new_run(recipe, overrides, out)
    mirroring.claim(run)
    with mirroring.completed(run), monitoring.monitored(run), recorded(run.folder, "run"):
        results, before = run_pipeline(run, pipeline_of(run.recipe).items), published_mark(run)
        curated = publish(run, results)
        if published_mark(run) != before:
            current_observer().published(run.recipe.name, curated, results.funnel)
    return curated
