"""What a training run has to compute, by the figures that its recipe states: the work of generating and of training.

Of a stage with s steps of B rollouts, each of t tokens, of which r are sampled for one that is trained on:

    sampled = s B r t        on the GPUs that generate, each so many tokens a second
    trained = s B t          on those that train
    hours   = the longer of both where GPUs are apart, their sum where they take turns

Invariants: pure but for a model's `config.json`; nothing is measured and no speed is guessed: `[costs]` has them all.

Not here: which GPUs do what (`training.engines.placement`), disk and the whole plan (`training.planning`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from curation.records import ConfigError
from training.config import CollectorSettings, StatedTrainingCosts
from training.embedded_model import resolve_model
from training.optimisation.memory import MODEL_SHAPES, MemoryEstimate, ModelShape, estimate_memory
from training.recipe import TrainRecipe
from training.rollouts.curriculum.settings import StageSettings


@dataclass(frozen=True, slots=True)
class StageWork:
    """What a stage of a run computes. ``generating`` and ``training`` are hours of one GPU.

    Example: ``StageWork(60, 8192, 24_576, 614_400, 491_520, 4.9e9, 3.9e9, 1365.0, 364.0)``
    """

    steps: int
    n_batch: int
    max_length: int
    sampled: int
    trained: int
    sampled_tokens: float
    trained_tokens: float
    generating: float
    training: float

    def hours(self, trainers: int, generators: int, *, waits: bool) -> float:
        """Return the hours by the clock; ``waits``: one of both waits for the other."""
        generating, training = self.generating / generators, self.training / trainers
        return generating + training if waits else max(generating, training)


@dataclass(frozen=True, slots=True)
class Workload:
    """What a run computes. ``evaluated_tokens`` are None where nobody says how many problems are held out.

    ``evaluating`` is in hours of one GPU.
    """

    stages: tuple[StageWork, ...]
    evaluated_tokens: float | None
    evaluating: float

    def hours(self, trainers: int, generators: int, *, waits: bool) -> float:
        """Return the hours by the clock, evaluations behind the stages."""
        return sum(stage.hours(trainers, generators, waits=waits) for stage in self.stages) + (
            self.evaluating / generators
        )


def workload(recipe: TrainRecipe, costs: StatedTrainingCosts, subject: str) -> Workload:
    """Return what a run computes.

    Args:
        subject: begins the errors, as in ``recipe a.toml``.

    Raises:
        ConfigError: the recipe does not state all that is needed; the text says what to state.
    """
    sizes = _sizes(recipe, costs, subject)
    stages = tuple(_stage(recipe, costs, number, size, subject) for number, size in enumerate(sizes))
    evaluated = _evaluated_tokens(recipe, costs, sum(stage.steps for stage in stages), subject)
    speed = _value(costs.generated_tokens_per_s, len(sizes) - 1, "generated_tokens_per_s", subject)
    return Workload(stages, evaluated, (evaluated or 0.0) / speed / 3600)


def _sizes(recipe: TrainRecipe, costs: StatedTrainingCosts, subject: str) -> list[tuple[int, int]]:
    """Return the steps of each stage and its n_batch; a run without stages is one."""
    if recipe.stored is not None:
        return [(_steps(recipe, costs, subject), recipe.collector.n_batch)]
    stages, left, steps = _named(recipe), recipe.steps, []
    for number, stage in enumerate(stages[:-1]):
        if stage.steps is None:
            raise ConfigError(
                f"{subject}: nobody knows how long curriculum.stages.{number} lasts, which ends where a curve is flat; "
                "state its `steps`, those it takes at the latest."
            )
        steps.append(min(stage.steps, left))
        left -= steps[-1]
    sizes = [collector.n_batch for collector in stage_collectors(recipe)]
    return list(zip([*steps, left], sizes, strict=True))


def _steps(recipe: TrainRecipe, costs: StatedTrainingCosts, subject: str) -> int:
    """Return the steps of a run with stored attempts."""
    assert recipe.stored is not None
    if costs.stored_steps is None:
        raise ConfigError(
            f"{subject}: how many steps train on stored attempts alone depends on the store; state costs.stored_steps."
        )
    return min(recipe.steps, costs.stored_steps) if recipe.stored.only else recipe.steps


def _stage(
    recipe: TrainRecipe, costs: StatedTrainingCosts, number: int, size: tuple[int, int], subject: str
) -> StageWork:
    steps, n_batch = size
    length = _length_of(recipe, number)
    sampling = max(steps - (costs.stored_steps or 0), 0) if recipe.stored is not None else steps
    tokens = _value(costs.tokens_per_rollout, number, "tokens_per_rollout", subject)
    trained = steps * n_batch
    sampled = round(sampling * n_batch * _value(costs.sampled_per_trained, number, "sampled_per_trained", subject))
    return StageWork(
        steps,
        n_batch,
        recipe.rewards.max_length if length is None else length + recipe.rewards.effective_length_cache,
        sampled,
        trained,
        sampled * tokens,
        trained * tokens,
        sampled * tokens / _value(costs.generated_tokens_per_s, number, "generated_tokens_per_s", subject) / 3600,
        trained * tokens / _value(costs.trained_tokens_per_s, number, "trained_tokens_per_s", subject) / 3600,
    )


def _length_of(recipe: TrainRecipe, number: int) -> int | None:
    """Return the un-penalised length that a stage names or has from those before; None: the rewards'."""
    named = [stage.lengths for stage in _named(recipe)[: number + 1] if stage.lengths is not None]
    return named[-1] if named else None


def _named(recipe: TrainRecipe) -> Sequence[StageSettings]:
    return recipe.curriculum.stages if recipe.curriculum is not None else ()


def stage_collectors(recipe: TrainRecipe) -> list[CollectorSettings]:
    """Return the collector of each stage, for what is to be said of its sizes before a run."""
    present, collectors = recipe.collector, []
    for stage in _named(recipe) or (StageSettings(),):
        changes = {"n_batch": stage.n_batch or present.n_batch, "n_async": stage.n_async or present.n_async}
        cut = {"n_minibatch": None} if changes["n_batch"] != present.n_batch else {}
        present = present.model_copy(update={**changes, **cut})
        collectors.append(present)
    return collectors


def _evaluated_tokens(recipe: TrainRecipe, costs: StatedTrainingCosts, steps: int, subject: str) -> float | None:
    settings = recipe.evaluation
    if settings.data is None:
        return 0.0
    problems = settings.problems or getattr(settings.data, "problems", None)
    if problems is None:
        return None
    last = len(_named(recipe)) - 1
    tokens = _value(costs.tokens_per_rollout, max(last, 0), "tokens_per_rollout", subject)
    times = 1 + -(-steps // settings.every)
    return float(times * problems * settings.attempts * tokens)


def model_shape(recipe: TrainRecipe, costs: StatedTrainingCosts, folder: Path, subject: str) -> ModelShape:
    """Return the sizes of the model: stated, or as its folder has them."""
    if costs.shape in MODEL_SHAPES:
        return MODEL_SHAPES[costs.shape]
    path = resolve_model(costs.shape or recipe.model, folder) / "config.json"
    try:
        return ModelShape.of(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(
            f"{subject}: its model's sizes are not to be read ({path}); fetch the model, or state costs.shape, one of "
            f"{', '.join(MODEL_SHAPES)}."
        ) from error


def number_bytes(recipe: TrainRecipe) -> int:
    """Return the bytes of a computing number."""
    return 2 if recipe.compute.dtype == "bfloat16" else 4


def memory_of(recipe: TrainRecipe, shape: ModelShape, trainers: int) -> MemoryEstimate:
    """Return what a GPU that trains needs."""
    from training.objectives.registry import needs_of  # needs torch

    return estimate_memory(
        shape,
        trainers,
        recipe.packing.micro_batch_tokens,  # of each GPU, also where verl cuts sequences over several
        checkpointing=recipe.compute.activation_checkpointing,
        dtype_bytes=number_bytes(recipe),
        reference=needs_of(recipe.objective).uses_reference,
        lora_rank=recipe.lora.rank if recipe.lora is not None else 0,
    )


def _value(values: Sequence[float], number: int, name: str, subject: str) -> float:
    if number < len(values):
        return values[number]
    if len(values) == 1:
        return values[0]
    raise ConfigError(f"{subject}: costs.{name} has {len(values)} values; give one, or one for each stage.")
