"""Compute the work of a training run from its recipe's `[costs]`.

For a stage with s steps of B rollouts of t tokens, r of them sampled per trained one:

    sampled = s B r t        on the GPUs that generate
    trained = s B t          on those that train
    hours   = the max of both on separate GPUs, their sum if they take turns
"""

from __future__ import annotations

from dataclasses import dataclass

from curation.config.schedule import TrainingCosts
from curation.records import ConfigError
from training.recipe import TrainRecipe


@dataclass(frozen=True, slots=True)
class StageWork:
    """The work of a stage; ``generating`` and ``training`` are GPU hours."""

    steps: int
    n_batch: int
    sampled: int
    trained: int
    sampled_tokens: float
    trained_tokens: float
    generating: float
    training: float

    def hours(self, trainers: int, generators: int, *, waits: bool) -> float:
        """Return the hours; ``waits``: generating and training take turns."""
        generating, training = self.generating / max(generators, 1), self.training / max(trainers, 1)
        return generating + training if waits else max(generating, training)


@dataclass(frozen=True, slots=True)
class Workload:
    """The work of a run; ``evaluating`` is in GPU hours, ``evaluated_tokens`` is None if unknown."""

    stages: tuple[StageWork, ...]
    evaluated_tokens: float | None
    evaluating: float

    def hours(self, trainers: int, generators: int, *, waits: bool) -> float:
        """Return the hours, with evaluations after the stages."""
        stages = sum(stage.hours(trainers, generators, waits=waits) for stage in self.stages)
        return stages + self.evaluating / max(generators, 1)


def workload(recipe: TrainRecipe, costs: TrainingCosts, subject: str) -> Workload:
    """Return the work of a run; errors begin with ``subject``.

    Raises:
        ConfigError: a figure is missing.
    """
    stages, length, speed = [], 0.0, 1.0
    for number, (steps, n_batch) in enumerate(_sizes(recipe, costs, subject)):
        names = ("sampled_per_trained", "tokens_per_attempt", "tokens_per_s", "trained_tokens_per_s")
        share, length, speed, trained_speed = (costs.of_stage(name, number, subject) for name in names)
        sampling = max(steps - (costs.stored_steps or 0), 0) if recipe.stored is not None else steps
        sampled, trained = round(sampling * n_batch * share), steps * n_batch
        hours = sampled * length / speed / 3600, trained * length / trained_speed / 3600
        stages.append(StageWork(steps, n_batch, sampled, trained, sampled * length, trained * length, *hours))
    held_out = recipe.evaluation
    tokens: float | None = None
    problems: int | None = held_out.problems or getattr(held_out.data, "problems", None)
    if held_out.data is None:
        tokens = 0.0
    elif problems is not None:  # at the last stage's length and speed
        rounds = 1 + -(-sum(stage.steps for stage in stages) // held_out.every)
        tokens = rounds * problems * held_out.attempts * length
    return Workload(tuple(stages), tokens, (tokens or 0.0) / speed / 3600)


def _sizes(recipe: TrainRecipe, costs: TrainingCosts, subject: str) -> list[tuple[int, int]]:
    if recipe.stored is not None:
        if costs.stored_steps is None:
            raise ConfigError(f"{subject}: state costs.stored_steps, the steps that train on stored attempts alone.")
        steps = min(recipe.steps, costs.stored_steps) if recipe.stored.only else recipe.steps
        return [(steps, recipe.collector.n_batch)]
    left, steps_of = recipe.steps, []
    for number, stage in enumerate(recipe.stages[:-1]):
        if stage.steps is None:
            stage_name = f"{subject}: curriculum.stages.{number}"
            raise ConfigError(f"{stage_name} has no fixed length; set its `steps`, which are the maximum.")
        steps_of.append(min(stage.steps, left))
        left -= steps_of[-1]
    return list(zip([*steps_of, left], (collector.n_batch for collector in recipe.collectors), strict=True))
