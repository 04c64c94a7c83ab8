"""The pipelines of math and code, from raw rows to a curated set, and how commands and flows run them.

Stage 2 judges all problems again, not only those that stage 1 keeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from curation.config import Recipe
from curation.records import ConfigError, StoreError
from curation.storage.locks import lock_folder
from curation.storage.stages import atomic_write
from flows.publish.artifacts import show_in_prefect
from flows.publish.curated_set import publish, published_mark
from flows.run import mirroring
from flows.run.history import recorded
from flows.run.pipeline import Pipeline, run_pipeline
from flows.run.policies import check_models, is_offline
from flows.run.run_folder import Run, new_run
from flows.run.runner import runner_of
from flows.run.stage import Kind, Results, Stage, computing_only
from flows.stages.decisions import difficulty
from flows.stages.decontamination import DECONTAMINATION
from flows.stages.dedup import EXACT_DEDUP, NEAR_DEDUP
from flows.stages.export import EXPORT, PUBLISHED
from flows.stages.grader import GRADER
from flows.stages.questions import OVERLAPS, PREMISES, REWRITING, row_questions
from flows.stages.references import REFERENCES, REVIEW
from flows.stages.sources import SOURCES
from flows.stages.statements import DOUBTFUL_ROWS, PROGRAMS, STATEMENTS
from flows.stages.tests import EXECUTION_MATRIX, LANGUAGE_VARIANTS, TEST_PROGRAMS, TESTS
from flows.stages.translation import TRANSLATION

CURATE_MATH = Pipeline(
    "curate-math",
    (
        SOURCES,
        REWRITING,
        STATEMENTS,
        DOUBTFUL_ROWS,
        REVIEW,
        REFERENCES,
        EXACT_DEDUP,
        NEAR_DEDUP,
        DECONTAMINATION,
        OVERLAPS,
        PREMISES,
        *difficulty("stage1"),
        GRADER,
        *difficulty("stage2"),
        *PUBLISHED,
    ),
)

CURATE_CODE = Pipeline(
    "curate-code",
    (
        SOURCES,
        PROGRAMS,
        EXACT_DEDUP,
        NEAR_DEDUP,
        DECONTAMINATION,
        OVERLAPS,
        EXECUTION_MATRIX,
        TEST_PROGRAMS,
        TESTS,
        LANGUAGE_VARIANTS,
        *difficulty("stage1"),
        *difficulty("stage2"),
        TRANSLATION,
        EXPORT,
    ),
)

PIPELINES = {pipeline.name: pipeline for pipeline in (CURATE_MATH, CURATE_CODE)}
"""By a recipe's `flow`."""


def pipeline_of(recipe: Recipe) -> Pipeline:
    """Return a recipe's pipeline, with its own questions added."""
    pipeline = PIPELINES[recipe.flow]
    questions, place = row_questions(recipe), pipeline.items.index(OVERLAPS) + 1
    if taken := {stage.name for stage in questions} & {item.name for item in pipeline.items}:
        raise ConfigError(f"questions.{min(taken)}: a stage has this name; give the question another one.")
    items = (*pipeline.items[:place], *questions, *pipeline.items[place:])
    return pipeline if len(items) == len(pipeline.items) else replace(pipeline, items=items)


def check_inputs(run: Run) -> None:
    """Refuse invalid inputs and models before a run."""
    pipeline = pipeline_of(run.recipe)
    for name in run.recipe.questions:
        if run.recipe.asks(name) and all(stage.asks != f"questions.{name}.model" for stage in pipeline.stages):
            raise ConfigError(f"questions.{name}: no stage of `{pipeline.name}` asks it; remove the table.")
    if not is_offline():
        check_models(run)
    for item in pipeline.items:
        if item.enabled(run):
            item.check(run)


def curate(recipe: Path, out: Path | None = None, overrides: Sequence[str] = ()) -> Path:
    """Run a recipe's pipeline and return the published set's folder.

    Args:
        out: the run folder, by default runs/NAME.
        overrides: changed settings, as ``key=value``.
    """
    with open_curation(new_run(recipe, overrides, out)) as run:
        return publish_set(run, run_stages(run))


def curate_only(name: str, recipe: Path, out: Path | None = None, overrides: Sequence[str] = ()) -> Path | None:
    """Run one stage of a recipe's pipeline; all earlier ones must be finished.

    Returns:
        The set's folder, published again, if the stage adds rows to it or exports it; else None.

    Raises:
        ConfigError: the run has no such stage.
        StoreError: another stage would have to be computed.
    """
    run = new_run(recipe, overrides, out)
    stages = pipeline_of(run.recipe).stages_of(run)
    chosen = next((stage for stage in stages if stage.name == name), None)
    if chosen is None:
        names = ", ".join(stage.name for stage in stages)
        raise ConfigError(f"--only {name}: the run has no such stage; it has {names}.")
    is_published = chosen.kind in (Kind.ADDITION, Kind.EXPORT)
    items: tuple[Stage, ...] = stages if is_published else stages[: stages.index(chosen) + 1]
    mark = run.folder / "run.json"
    before = mark.read_text(encoding="utf-8") if mark.exists() else None
    with open_curation(run), computing_only((name, EXPORT.name)):
        try:
            results = run_pipeline(run, items)
        except StoreError:  # refused: restore the recipe that `save` replaced
            if before is not None:
                atomic_write(mark, before)
            raise
        return publish_set(run, results) if is_published else None


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
    """Run the recipe's pipeline, as Prefect tasks if in a flow run."""
    return run_pipeline(run, pipeline_of(run.recipe).items)


def publish_set(run: Run, results: Results) -> Path:
    """Publish the set, show it in Prefect if changed, and return its folder."""
    before = published_mark(run)
    curated = publish(run, results)
    if published_mark(run) != before:
        show_in_prefect(run.recipe.name, curated, results.funnel)
    return curated
