"""The parts of a training loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from training.engines.embedded.heartbeat import Heartbeat
from training.engines.mirroring import RunMirror
from training.evaluation.metrics import MetricsLogger
from training.generation.generators import Generator
from training.optimisation.checkpoint import JsonlLog
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
    values: dict[str, float] = field(default_factory=dict)
    teacher_prompt: TeacherPrompt = student_prompt
