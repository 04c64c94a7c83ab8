"""How many engines a recipe of curation gets under `goldilocks up`: pure functions of it and of the GPUs there are.

Its engines run one stage after another, so each policy gets all GPUs. Not here: training, which has trainers and
generators at once (`training.engines.placement`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from curation.config import Recipe, VllmPolicy
from curation.policies.vllm.placement import replica_count
from curation.records import ConfigError


def replica_overrides(recipe: Recipe, gpus: int) -> list[str]:
    """Return the settings with which every vLLM policy of a recipe uses all GPUs; replicas that it states stay.

    Raises:
        ConfigError: a policy needs more GPUs than there are.
    """
    changes = []
    for key, policy in vllm_policies(recipe):
        if gpus and policy.engine_gpus > gpus:
            wide = f"{key}.tensor_parallel = {policy.tensor_parallel}"
            if policy.data_parallel > 1:
                wide += f" times data_parallel = {policy.data_parallel}"
            raise ConfigError(f"{wide} is more than the {gpus} GPUs that there are; lower it, or give more GPUs.")
        count = replica_count("auto", policy.engine_gpus, gpus)
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
