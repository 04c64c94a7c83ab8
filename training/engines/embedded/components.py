"""Build the parts of a training loop from a recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch.distributed as dist

from curation.config import EndpointModel, VllmModel
from training.engines.embedded.heartbeat import Heartbeat
from training.engines.embedded.servers import served
from training.engines.mirroring import RunMirror
from training.evaluation.metrics import MetricsLogger
from training.generation.generators import Generator, TorchGenerator
from training.generation.weight_transfer import Way
from training.objectives.registry import objective_of
from training.objectives.soft_values import ProblemValues
from training.optimisation.checkpoint import Checkpoint, JsonlLog
from training.optimisation.reference import ReferencePolicy
from training.optimisation.trainer import Trainer
from training.recipe import TrainRecipe
from training.rollouts.attempt_log import AttemptLog
from training.rollouts.batches import TeacherPrompt, student_prompt
from training.rollouts.curriculum import CurriculumController
from training.rollouts.rollouts import RolloutRunner
from training.rollouts.tasks import TrainingTask
from training.stored.batches import StoredBatches

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(slots=True)
class LoopComponents:
    """The parts of a loop."""

    recipe: TrainRecipe
    out: Path
    tasks: Mapping[str, TrainingTask]
    held_out_tasks: Sequence[TrainingTask]
    trainer: Trainer
    tokenizer: PreTrainedTokenizerBase
    generator: Generator | None
    rollouts: RolloutRunner
    curriculum: CurriculumController
    logs: Mapping[str, JsonlLog]
    metrics_logger: MetricsLogger
    attempt_log: AttemptLog
    heartbeat: Heartbeat
    stored: StoredBatches
    mirror: RunMirror
    values: ProblemValues | None = None
    teacher_prompt: TeacherPrompt = student_prompt


def build_generator(recipe: TrainRecipe, folder: Path, urls: Sequence[str] = (), way: Way | None = None) -> Generator:
    """Build the recipe's generator without starting it.

    Args:
        urls: addresses of the run's own vLLM servers.
        way: of the weights to the servers; chosen if missing.
    """
    model, n_async, temperature, compute = recipe.trained, recipe.collector.n_async, recipe.temperature, recipe.compute
    if isinstance(model, VllmModel):
        model = served(recipe, urls)
    if isinstance(model, EndpointModel):
        from training.generation.endpoint_generators import EndpointGenerator

        copies = compute.dtype != "float32" or (dist.is_initialized() and dist.get_world_size() > 1)
        return EndpointGenerator(folder, model, temperature=temperature, device=compute.device, lasting=copies, way=way)
    return TorchGenerator(folder, capacity=n_async, temperature=temperature, dtype=compute.dtype, device=compute.device)


def problem_values(
    recipe: TrainRecipe, tasks: Sequence[TrainingTask], reference: ReferencePolicy | None, checkpoint: Checkpoint | None
) -> ProblemValues | None:
    """Return the objective's values of the problems, if any, restored from a checkpoint.

    Raises:
        ConfigError: the data lack what they need.
    """
    objective, settings = objective_of(recipe.objective), recipe.objective
    if objective.values is None or reference is None:
        return None
    name = recipe.reference_model
    values = objective.values(settings, tasks, recipe.rewards, f"{name}@{reference.revision}")
    if values is not None and checkpoint is not None:
        values.restore(checkpoint.state["values"])
    return values
