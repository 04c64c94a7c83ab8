"""The curriculum of a run as it begins: with what its sets measured of its problems."""

from __future__ import annotations

from collections.abc import Mapping

from training.recipe import TrainRecipe
from training.rollouts.curriculum.controller import CurriculumController
from training.rollouts.curriculum.pools import PassCounts
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
        {task.id: PassCounts(0, task.correct, task.judged) for task in tasks.values() if task.judged},
        [task.id for task in tasks.values() if task.deferred],
        {task.id: task.request.domain.value for task in tasks.values()},
    )
