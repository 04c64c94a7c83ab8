"""Which GPUs do what under `goldilocks up`: pure functions of a recipe and of the GPUs that there are.

Curation has its engines one stage after another, so each policy gets all GPUs. A training run has trainers and
generators at once, so they are parted: trainers first, which exchange gradients and want to be neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from curation.config import Recipe, VllmPolicy
from curation.policies.vllm.placement import gpu_shares, replica_count
from curation.records import ConfigError
from training.recipe import TrainRecipe


@dataclass(frozen=True, slots=True)
class TrainingLayout:
    """The GPUs of the trainer's processes, one each, and those of every generator server.

    Example: ``TrainingLayout(("0", "1"), (("2",), ("3",)))``
    """

    trainers: tuple[str, ...]
    generators: tuple[tuple[str, ...], ...]


def replica_overrides(recipe: Recipe, gpus: int) -> list[str]:
    """Return the settings with which every vLLM policy of a recipe uses all GPUs; replicas that it states stay.

    Raises:
        ConfigError: a policy needs more GPUs than there are.
    """
    changes = []
    for key, policy in vllm_policies(recipe):
        if gpus and policy.tensor_parallel > gpus:
            raise ConfigError(
                f"{key}.tensor_parallel = {policy.tensor_parallel} is more than the {gpus} GPUs that there are; lower "
                "it, or give more GPUs."
            )
        count = replica_count("auto", policy.tensor_parallel, gpus)
        if policy.replicas == 1 and count > 1:
            changes.append(f"{key}.replicas={count}")
    return changes


def vllm_policies(settings: BaseModel, key: str = "") -> Iterator[tuple[str, VllmPolicy]]:
    """Yield every vLLM policy of a recipe under its dotted key."""
    for name in type(settings).model_fields:
        yield from _policies_in(getattr(settings, name), f"{key}.{name}" if key else name)


def _policies_in(value: Any, key: str) -> Iterator[tuple[str, VllmPolicy]]:
    if isinstance(value, VllmPolicy):
        yield key, value
    elif isinstance(value, BaseModel):
        yield from vllm_policies(value, key)
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            yield from _policies_in(item, f"{key}.{number}")


def training_layout(recipe: TrainRecipe, gpus: Sequence[str], trainers: int | None = None) -> TrainingLayout:
    """Return who gets which GPU in a training run.

    Args:
        trainers: GPUs that train; where absent half of them, the larger half, and all where the recipe generates in
            the trainer's process or on servers of its own.

    Raises:
        ConfigError: nothing is left for one of both.
    """
    if recipe.generator.kind != "vllm":
        return TrainingLayout(tuple(gpus[: trainers or len(gpus)]), ())
    size = recipe.generator.tensor_parallel
    training = trainers if trainers is not None else len(gpus) - len(gpus) // 2 // size * size
    servers = (len(gpus) - training) // size
    if training < 1 or servers < 1:
        raise ConfigError(
            f"recipe {recipe.name}: of {len(gpus)} GPUs {training} would train and {len(gpus) - training} are left for "
            f"generators of {size} each; give --gpus and --trainer-gpus so that there are some of both."
        )
    return TrainingLayout(tuple(gpus[:training]), tuple(gpu_shares(gpus[training:], servers, size)))
