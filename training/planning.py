"""What a training run will cost by the figures that its recipe states: hours, tokens, disk, and memory per GPU.

    disk = (keep + 1) (12 P + b P) + b P + 4 letters a token     P parameters, b bytes a computing number

12 P are fp32 weights and AdamW's two moments (with `[lora]` of the adapters alone), b P a checkpoint's export and
RUN/model; verl makes room before it writes, so it has max(``keep``, 2) checkpoints at most. Letters are not compressed
here. GPUs are shared out as a run does it (`training.engines.placement`).

Not here: what a run computes (`training.workload`), what curation costs (`flows.cli.plan_stated`), sizes that starve
generators (`training.rollouts.starvation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from curation.records import ConfigError
from training.config import StatedTrainingCosts
from training.engines.placement import place_embedded, place_verl
from training.generation.vllm_settings import EndpointGeneratorSettings
from training.optimisation.memory import MemoryEstimate, ModelShape
from training.recipe import TrainRecipe
from training.workload import StageWork, memory_of, model_shape, number_bytes, workload

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
    shape = model_shape(recipe, costs, folder, subject)
    work = workload(recipe, costs, subject)
    trainers, generators, turns = _placed(recipe, costs, shape)
    devices = (max(trainers, 1), max(generators, 1))
    stages = tuple(_stage(one, devices, waits=turns or recipe.synchronous) for one in work.stages)
    width = number_bytes(recipe)
    sampled = sum(stage.sampled_tokens for stage in stages) + (work.evaluated_tokens or 0.0)
    checkpoint = 12.0 * _trained_parameters(recipe, shape) + width * shape.num_parameters
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
        work.evaluated_tokens,
        work.evaluating / max(generators, 1),
        memory_of(recipe, shape, trainers) if trainers else None,
        float(width * shape.num_parameters / tensor),
        checkpoint,
        texts,
        _checkpoints_at_once(recipe) * checkpoint + _further_bytes(recipe, shape, stages, width) + texts,
    )


def _placed(recipe: TrainRecipe, costs: StatedTrainingCosts, shape: ModelShape) -> tuple[int, int, bool]:
    """Return the GPUs that train, those that generate, and whether these are the same; 0 on a CPU."""
    if recipe.engine == "verl":
        per_node = costs.gpus if recipe.verl.gpus_per_node == "auto" else recipe.verl.gpus_per_node
        placed = place_verl(recipe, per_node, experts=False, shape=shape)
        return placed.trainers, placed.generators, recipe.synchronous
    if not recipe.compute.device.startswith("cuda"):
        return 0, 0, True
    ranks = place_embedded(recipe, [str(number) for number in range(costs.gpus)], shape=shape)
    if ranks.generators:
        return ranks.processes, sum(map(len, ranks.generators)), False
    if isinstance(recipe.generator, EndpointGeneratorSettings):
        return ranks.processes, len(recipe.generator.urls), False
    return ranks.processes, 1, True  # rank 0 generates


def _stage(work: StageWork, devices: tuple[int, int], *, waits: bool) -> TrainingStage:
    trainers, generators = devices
    return TrainingStage(
        work.steps,
        work.n_batch,
        work.max_length,
        work.sampled,
        work.trained,
        work.sampled_tokens,
        work.trained_tokens,
        work.generating / generators,
        work.training / trainers,
        work.hours(trainers, generators, waits=waits),
    )


def _trained_parameters(recipe: TrainRecipe, shape: ModelShape) -> int:
    """Return how many parameters have gradients: all, or those of the adapters."""
    if recipe.lora is None:
        return shape.num_parameters
    return shape.adapter_parameters(recipe.lora.rank)


def _checkpoints_at_once(recipe: TrainRecipe) -> int:
    """Return how many checkpoints lie on disk at most; ours writes the next one before the oldest goes, verl where
    it is the only one."""
    keep = recipe.checkpoints.keep
    return max(keep, 2) if recipe.engine == "verl" else keep + 1


def _further_bytes(recipe: TrainRecipe, shape: ModelShape, stages: Sequence[TrainingStage], width: int) -> float:
    """Return the bytes of the trained model, of the one it began with, and of the versions that are kept."""
    steps, kept = sum(stage.steps for stage in stages), 2 + recipe.evaluation.keep_best
    held = float(width * kept * shape.num_parameters)
    if recipe.checkpoints.trajectory is not None:
        held += width * shape.num_parameters * (steps // recipe.checkpoints.trajectory)
    return held


def _text_bytes(recipe: TrainRecipe, tokens: float) -> float:
    if recipe.engine == "verl" or recipe.attempt_store == "none":  # verl's texts are not kept
        return 0.0
    return tokens * (LETTERS_PER_TOKEN + (8 if recipe.attempt_store == "tokens" else 0))
