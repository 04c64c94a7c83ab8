"""What a training run will cost by the figures that its recipe states: hours, tokens, disk, and memory per GPU.

Of a stage with s steps of B rollouts, each of t tokens, of which r are sampled for one that is trained on:

    sampled = s B r t        on the GPUs that generate, each so many tokens a second
    trained = s B t          on those that train
    hours   = the longer of both where GPUs are apart, their sum where they take turns
    disk    = (keep + 1) (12 P + b P) + b P + 4 letters a token     P parameters, b bytes a computing number

12 P are fp32 weights and AdamW's two moments, b P a checkpoint's export and RUN/model; verl makes room before it
writes, so it has ``keep`` checkpoints at most. Letters are not compressed here.

Invariants: pure but for a model's `config.json`; nothing is measured and no speed is guessed: `[costs]` has them all.

Not here: what curation costs (`flows.cli.plan_stated`), sizes that starve generators (`training.rollouts.starvation`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from curation.records import ConfigError
from training.config import CollectorSettings, StatedTrainingCosts
from training.embedded_model import resolve_model
from training.engines.placement import place_embedded, place_verl
from training.optimisation.memory import MODEL_SHAPES, MemoryEstimate, ModelShape, estimate_memory
from training.recipe import TrainRecipe
from training.rollouts.curriculum.settings import StageSettings

LETTERS_PER_TOKEN = 4
"""Bytes of text that a token is taken for."""


@dataclass(frozen=True, slots=True)
class TrainingStage:
    """What a stage of the run takes; hours are by the clock.

    Example: ``TrainingStage(60, 8192, 24_576, 614_400, 491_520, 4.9e9, 3.9e9, 340.0, 68.0, 340.0)``
    """

    steps: int
    n_batch: int
    max_length: int
    sampled: int
    trained: int
    sampled_tokens: float
    trained_tokens: float
    generating_hours: float
    training_hours: float
    hours: float


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """What a run takes. ``memory`` and ``disk_bytes`` are for the model's ``parameters``; no GPU: no memory.

    ``trainers`` and ``generators`` are GPUs, 0 on a CPU; ``taking_turns``: the same ones do both. ``evaluated_tokens``
    are None where the recipe does not say how many problems are held out.
    """

    trainers: int
    generators: int
    taking_turns: bool
    parameters: int
    stages: tuple[TrainingStage, ...]
    evaluated_tokens: float | None
    evaluation_hours: float
    memory: MemoryEstimate | None
    generator_weights: float
    checkpoint_bytes: float
    text_bytes: float
    disk_bytes: float

    @property
    def gpus(self) -> int:
        """Return how many GPUs the run keeps."""
        return self.trainers if self.taking_turns else self.trainers + self.generators

    @property
    def hours(self) -> float:
        """Return the hours by the clock."""
        return sum(stage.hours for stage in self.stages) + self.evaluation_hours

    @property
    def tokens(self) -> float:
        """Return the tokens that are sampled, evaluations among them."""
        return sum(stage.sampled_tokens for stage in self.stages) + (self.evaluated_tokens or 0.0)


def plan_training(recipe: TrainRecipe, folder: Path, subject: str) -> TrainingPlan:
    """Return the plan of a run.

    Args:
        folder: what the recipe's paths refer to.
        subject: begins the errors, as in ``recipe a.toml``.

    Raises:
        ConfigError: the recipe states no costs, or not all that are needed; the text says what to state.
    """
    costs = recipe.costs
    if costs is None:
        raise ConfigError(
            f"{subject}: it states no costs; add a table [costs] with tokens_per_rollout, sampled_per_trained, "
            "generated_tokens_per_s and trained_tokens_per_s."
        )
    trainers, generators, turns = _placed(recipe, costs)
    sizes = _stages(recipe, costs, subject)
    stages = tuple(
        _stage(recipe, costs, number, size, (max(trainers, 1), max(generators, 1), turns), subject)
        for number, size in enumerate(sizes)
    )
    evaluated = _evaluated_tokens(recipe, costs, sum(stage.steps for stage in stages), subject)
    speed = _value(costs.generated_tokens_per_s, len(sizes) - 1, "generated_tokens_per_s", subject)
    shape = _shape(recipe, costs, folder, subject)
    width = 2 if recipe.compute.dtype == "bfloat16" else 4
    sampled = sum(stage.sampled_tokens for stage in stages) + (evaluated or 0.0)
    checkpoint = (12.0 + (width if recipe.checkpoints.export else 0)) * shape.num_parameters
    texts = _text_bytes(recipe, sampled)
    tensor = (
        recipe.verl.rollout_tensor_parallel
        if recipe.engine == "verl"
        else getattr(recipe.generator, "tensor_parallel", 1)
    )
    return TrainingPlan(
        trainers,
        generators,
        turns,
        shape.num_parameters,
        stages,
        evaluated,
        (evaluated or 0.0) / speed / max(generators, 1) / 3600,
        _memory(recipe, shape, trainers, width) if trainers else None,
        float(width * shape.num_parameters / tensor),
        checkpoint,
        texts,
        _checkpoints_at_once(recipe) * checkpoint + _further_bytes(recipe, shape, stages, width) + texts,
    )


def _placed(recipe: TrainRecipe, costs: StatedTrainingCosts) -> tuple[int, int, bool]:
    """Return the GPUs that train, those that generate, and whether these are the same; 0 on a CPU."""
    names = [str(number) for number in range(costs.gpus)]
    if recipe.engine == "verl":
        per_node = costs.gpus if recipe.verl.gpus_per_node == "auto" else recipe.verl.gpus_per_node
        placed = place_verl(recipe.verl, per_node, synchronous=recipe.synchronous, experts=False)
        return placed.trainers, placed.generators, recipe.synchronous
    if not recipe.compute.device.startswith("cuda"):
        return 0, 0, True
    if costs.trainer_gpus is not None:
        return costs.trainer_gpus, costs.gpus - costs.trainer_gpus, False
    ranks = place_embedded(recipe, names).processes
    apart = ranks < costs.gpus
    return ranks, (costs.gpus - ranks if apart else ranks), not apart


def _stages(recipe: TrainRecipe, costs: StatedTrainingCosts, subject: str) -> list[tuple[int, int]]:
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
    recipe: TrainRecipe,
    costs: StatedTrainingCosts,
    number: int,
    size: tuple[int, int],
    devices: tuple[int, int, bool],
    subject: str,
) -> TrainingStage:
    steps, n_batch = size
    trainers, generators, turns = devices
    length = _length_of(recipe, number)
    sampling = max(steps - (costs.stored_steps or 0), 0) if recipe.stored is not None else steps
    tokens = _value(costs.tokens_per_rollout, number, "tokens_per_rollout", subject)
    trained = steps * n_batch
    sampled = round(sampling * n_batch * _value(costs.sampled_per_trained, number, "sampled_per_trained", subject))
    made = _value(costs.generated_tokens_per_s, number, "generated_tokens_per_s", subject)
    learnt = _value(costs.trained_tokens_per_s, number, "trained_tokens_per_s", subject)
    generating = sampled * tokens / made / generators / 3600
    training = trained * tokens / learnt / trainers / 3600
    waits = turns or recipe.synchronous
    return TrainingStage(
        steps,
        n_batch,
        recipe.rewards.max_length if length is None else length + recipe.rewards.effective_length_cache,
        sampled,
        trained,
        sampled * tokens,
        trained * tokens,
        generating,
        training,
        generating + training if waits else max(generating, training),
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


def _shape(recipe: TrainRecipe, costs: StatedTrainingCosts, folder: Path, subject: str) -> ModelShape:
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


def _memory(recipe: TrainRecipe, shape: ModelShape, trainers: int, width: int) -> MemoryEstimate:
    """Return what a GPU that trains needs; with offload weights and optimiser lie in the host's memory."""
    verl = recipe.engine == "verl"
    ranks = trainers if verl else max(trainers // recipe.compute.replicas, 1)
    kept = estimate_memory(
        shape,
        ranks,
        recipe.packing.micro_batch_tokens,  # of each GPU, also where verl cuts sequences over several
        checkpointing=recipe.compute.activation_checkpointing,
        dtype_bytes=width,
        logit_elements=recipe.packing.logit_elements,
        reference=bool(getattr(recipe.objective, "kl_coef", 0)) or recipe.objective.kind == "soft",
    )
    if not (recipe.verl.offload if verl else recipe.compute.cpu_offload):
        return kept
    return MemoryEstimate(0.0, 0.0, kept.gathered, kept.activations, kept.logits, kept.head)


def _checkpoints_at_once(recipe: TrainRecipe) -> int:
    """Return how many checkpoints lie on disk at most; ours writes the next one before the oldest goes."""
    return recipe.checkpoints.keep + (0 if recipe.engine == "verl" else 1)


def _further_bytes(recipe: TrainRecipe, shape: ModelShape, stages: Sequence[TrainingStage], width: int) -> float:
    """Return the bytes of the trained model, of the one it began with, and of the versions that are kept."""
    steps, kept = sum(stage.steps for stage in stages), 2 + recipe.evaluation.keep_best
    held = float(width * kept * shape.num_parameters)
    if recipe.checkpoints.trajectory is not None:
        held += width * shape.num_parameters * (steps // recipe.checkpoints.trajectory)
    if recipe.checkpoints.publish is not None:
        held += 2.0 * width * shape.num_parameters  # the last two stay
    return held


def _text_bytes(recipe: TrainRecipe, tokens: float) -> float:
    if recipe.engine == "verl" or not recipe.attempt_store.enabled:  # verl's texts are not kept
        return 0.0
    return tokens * (LETTERS_PER_TOKEN + (8 if recipe.attempt_store.tokens else 0))


def _value(values: Sequence[float], number: int, name: str, subject: str) -> float:
    if number < len(values):
        return values[number]
    if len(values) == 1:
        return values[0]
    raise ConfigError(f"{subject}: costs.{name} has {len(values)} values; give one, or one for each stage.")
