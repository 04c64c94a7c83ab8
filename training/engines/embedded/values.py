"""The values that a run's objective has of its problems."""

from __future__ import annotations

from collections.abc import Sequence

from training.objectives.registry import objective_of
from training.objectives.soft_values import ProblemValues
from training.optimisation.checkpoint import Checkpoint
from training.optimisation.reference import ReferencePolicy
from training.recipe import TrainRecipe
from training.rollouts.tasks import TrainingTask


def problem_values(
    recipe: TrainRecipe, tasks: Sequence[TrainingTask], reference: ReferencePolicy | None, checkpoint: Checkpoint | None
) -> ProblemValues | None:
    """Return the values that the recipe's objective has of the problems, as a checkpoint left them; None where it has
    none.

    Raises:
        ConfigError: the data do not hold what it needs.
    """
    objective, settings = objective_of(recipe.objective), recipe.objective
    if objective.values is None or reference is None:
        return None
    name = recipe.reference_model
    values = objective.values(settings, tasks, recipe.rewards, f"{name}@{reference.revision}")
    if values is not None and checkpoint is not None:
        values.restore(checkpoint.state["values"])
    return values
