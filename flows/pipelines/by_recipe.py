"""Which pipeline a recipe goes down."""

from __future__ import annotations

from curation.config import Recipe
from flows.pipelines.curate_code import CURATE_CODE
from flows.pipelines.curate_math import CURATE_MATH
from flows.run.pipeline import Pipeline
from flows.run.policies import check_models
from flows.run.run_folder import Run

PIPELINES = {pipeline.name: pipeline for pipeline in (CURATE_MATH, CURATE_CODE)}
"""By the name of their flow, as a recipe has it."""


def pipeline_of(recipe: Recipe) -> Pipeline:
    """Return the pipeline of a recipe."""
    return PIPELINES[recipe.flow]


def check_inputs(run: Run) -> None:
    """Refuse inputs that can be seen to be wrong before anything runs."""
    check_models(run.recipe, run.recipe_folder)
    for item in pipeline_of(run.recipe).items:
        if item.enabled(run):
            item.check(run)
