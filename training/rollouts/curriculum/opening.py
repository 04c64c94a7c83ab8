"""The curriculum of a run as it begins."""

from __future__ import annotations

from collections.abc import Mapping

from training.recipe import TrainRecipe
from training.rollouts.curriculum.controller import CurriculumController
from training.rollouts.tasks import TrainingTask


def open_curriculum(recipe: TrainRecipe, tasks: Mapping[str, TrainingTask]) -> CurriculumController:
    """Return the controller of a recipe's run on these problems."""
    return CurriculumController(
        tasks,
        recipe.curriculum,
        recipe.rewards,
        recipe.objective,
        recipe.seed,
        recipe.collector,
        recipe.steps,
        [task.id for task in tasks.values() if task.deferred],
        {task.id: task.request.domain.value for task in tasks.values()},
    )
