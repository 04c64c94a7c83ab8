"""Curate without Prefect, for commands and flows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from curation.storage.locks import lock_folder
from flows.pipelines.by_recipe import check_inputs, pipeline_of
from flows.publish.artifacts import show_in_prefect
from flows.publish.curated_set import publish, published_mark
from flows.run import mirroring
from flows.run.history import recorded
from flows.run.pipeline import run_pipeline
from flows.run.run_folder import Run, new_run
from flows.run.runner import runner_of
from flows.run.stage import Results


def curate(recipe: Path, out: Path | None = None, overrides: Sequence[str] = ()) -> Path:
    """Run a recipe's pipeline and return the published set's folder.

    Args:
        out: the run folder, by default runs/NAME.
        overrides: changed settings, as ``key=value``.
    """
    with open_curation(new_run(recipe, overrides, out)) as run:
        return publish_set(run, run_stages(run))


@contextmanager
def open_curation(run: Run) -> Iterator[Run]:
    """Check a run's inputs and hold its folder, runner and mirror within the block.

    Raises:
        ConfigError, SourceError: an input is invalid.
        StoreError: the folder is another recipe's, or in use.
    """
    run.check_owner()
    check_inputs(run)
    with lock_folder(run.folder):
        run.save()
        with mirroring.mirrored(run), runner_of(run.recipe), recorded(run.folder, "run"):
            yield run


def run_stages(run: Run) -> Results:
    """Run the recipe's pipeline, as tasks within a Prefect flow run."""
    return run_pipeline(run, pipeline_of(run.recipe).items)


def publish_set(run: Run, results: Results) -> Path:
    """Publish the set, show it in Prefect if changed, and return its folder."""
    before = published_mark(run)
    curated = publish(run, results)
    if published_mark(run) != before:
        show_in_prefect(run.recipe.name, curated, results.funnel)
    return curated
