"""Curation under Prefect: a pipeline as a flow, with one thin task per stage.

A stage's own folder remembers what is finished; Prefect's caches and result storage stay out of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import Task, flow, task
from prefect.cache_policies import NO_CACHE
from prefect.flows import Flow

from curation.config import Recipe
from flows.pipelines.by_recipe import pipeline_of
from flows.publish.artifacts import show_set
from flows.publish.curated_set import publish
from flows.run.pipeline import Item, Work, run_pipeline
from flows.run.run_folder import new_run
from flows.run.stage import StageResult


def as_task(item: Item, work: Work) -> Task[[], StageResult | None]:
    """Return an item's work as a Prefect task that bears its name."""
    named = task(name=item.task_name, task_run_name=item.task_run_name, cache_policy=NO_CACHE, persist_result=False)
    return named(work)


def curate(recipe: Path, out: Path, overrides: list[str] | None = None) -> Path:
    """Run the recipe's pipeline inside a flow, publish the set and show it on Prefect's page.

    Args:
        recipe: the recipe's TOML file.
        out: the run folder; what is finished there is not done again.
        overrides: settings changed, as ``key=value``.
    """
    run = new_run(recipe, overrides or [], out)
    results = run_pipeline(run, pipeline_of(run.recipe).items, as_task)
    curated = publish(run, results)
    show_set(run.recipe.name, curated, results.funnel)
    return curated


def flow_of(recipe: Recipe) -> Flow[Any, Path]:
    """Return the flow of a recipe's pipeline: `curate` under the pipeline's name."""
    return flow(name=pipeline_of(recipe).name, persist_result=False)(curate)
