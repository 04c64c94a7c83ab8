"""Curation and refresh as Prefect flows: one thin task per stage, and what was published on Prefect's page.

A stage's own folder remembers what is finished; Prefect's caches and result storage stay out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prefect import Task, flow, task
from prefect.cache_policies import NO_CACHE
from prefect.flows import Flow

from curation.config import Recipe
from curation.publish.cards import FunnelRow
from flows.pipelines import curating, refresh
from flows.pipelines.by_recipe import pipeline_of
from flows.publish.artifacts import show_set
from flows.run.observer import Item, Work, observed_by
from flows.run.stage import StageResult


class PrefectPage:
    """Prefect as the observer of the flow run that this is."""

    def around(self, item: Item, work: Work) -> Task[[], StageResult | None]:
        """Return an item's work as a Prefect task that bears its name."""
        named = task(name=item.task_name, task_run_name=item.task_run_name, cache_policy=NO_CACHE, persist_result=False)
        return named(work)

    def published(self, name: str, curated: Path, funnel: Sequence[FunnelRow]) -> None:
        """Leave the set's funnel, card, plots and changelog on the page."""
        show_set(name, curated, funnel)


def curate(recipe: Path, out: Path, overrides: list[str] | None = None) -> Path:
    """Run `flows.pipelines.curating.curate` inside a flow."""
    with observed_by(PrefectPage()):
        return curating.curate(recipe, out, overrides or [])


def flow_of(recipe: Recipe) -> Flow[Any, Path]:
    """Return the flow of a recipe's pipeline: `curate` under the pipeline's name."""
    return flow(name=pipeline_of(recipe).name, persist_result=False)(curate)


@flow(name="refresh", persist_result=False)
def refresh_flow(
    folder: Path, policy: Path, attempts: Path | None = None, *, accept: bool = False
) -> refresh.RefreshResult:
    """Run `flows.pipelines.refresh.refresh` as a flow of its own."""
    with observed_by(PrefectPage()):
        return refresh.refresh(folder, policy, attempts, accept=accept)
