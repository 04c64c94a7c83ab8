"""Which pipeline a recipe goes down."""

from __future__ import annotations

from dataclasses import replace

from curation.config import Recipe
from curation.records import ConfigError
from flows.pipelines.curate_code import CURATE_CODE
from flows.pipelines.curate_math import CURATE_MATH
from flows.run.offline import is_offline
from flows.run.pipeline import Pipeline
from flows.run.policies import check_models
from flows.run.run_folder import Run
from flows.stages.questions import OVERLAPS, row_questions

PIPELINES = {pipeline.name: pipeline for pipeline in (CURATE_MATH, CURATE_CODE)}
"""By the name of their flow, as a recipe has it."""


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
