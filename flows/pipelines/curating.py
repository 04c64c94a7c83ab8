"""Curation without Prefect: what `goldilocks run` calls, and of what the flows in `flows.curate_math` are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from curation.storage.locks import lock_folder
from flows.pipelines.by_recipe import check_inputs, pipeline_of
from flows.publish.artifacts import show_in_prefect
from flows.publish.curated_set import publish, published_mark
from flows.run import mirroring, monitoring
from flows.run.history import recorded
from flows.run.pipeline import run_pipeline
from flows.run.run_folder import Run, new_run
from flows.run.runner_ray import runner_of
from flows.run.stage import Results


def curate(recipe: Path, out: Path | None = None, overrides: Sequence[str] = ()) -> Path:
    """Run a recipe's pipeline and return the folder of the published set.

    Args:
        recipe: the recipe's TOML file.
        out: the run folder, runs/NAME by default; what is finished there is not done again.
        overrides: settings changed, as ``key=value``.
    """
    with open_curation(new_run(recipe, overrides, out)) as run:
        return publish_set(run, run_stages(run))


@contextmanager
def open_curation(run: Run) -> Iterator[Run]:
    """Check the inputs of a run and hold its folder, its runner and its mirror for the length of the block.

    Raises:
        ConfigError, SourceError: an input is seen to be wrong.
        StoreError: the folder belongs to another recipe, or another process holds it.
    """
    run.check_owner()
    check_inputs(run)
    with lock_folder(run.folder):
        run.save()
        mirroring.claim(run)
        with runner_of(run.recipe), mirroring.completed(run), monitoring.monitored(run), recorded(run.folder, "run"):
            yield run


def run_stages(run: Run) -> Results:
    """Run the stages of the recipe's pipeline in order; each is a task inside a Prefect flow run."""
    return run_pipeline(run, pipeline_of(run.recipe).items)


def publish_set(run: Run, results: Results) -> Path:
    """Publish the set, show a new one in Prefect's page if this is a flow run, and return its folder."""
    before = published_mark(run)
    curated = publish(run, results)
    if published_mark(run) != before:
        show_in_prefect(run.recipe.name, curated, results.funnel)
    return curated
