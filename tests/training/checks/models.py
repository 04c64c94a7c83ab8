"""Trainers of tiny random models (`tests.training.families`), for the checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.training.optimisation.test_trainer import recipe
from training.optimisation.distributed import DistributedContext
from training.optimisation.trainer import Trainer
from training.recipe import TrainRecipe

WORDS = range(3, 600)
"""Tokens that mean nothing special."""


def recipe_of(**changes: Any) -> TrainRecipe:
    """The trainer tests' recipe, with large micro-batches."""
    return recipe(packing={"micro_batch_tokens": 4096, **changes.pop("packing", {})}, **changes)


def trainer_of(folder: Path, **changes: Any) -> Trainer:
    """A trainer on one process, in fp32."""
    made = recipe_of(**changes)
    return Trainer(folder, made, DistributedContext(made.compute))
