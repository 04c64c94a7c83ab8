"""How many engines a recipe of curation gets under `goldilocks up`: pure functions of it and of the GPUs there are.

Its engines run one stage after another, so each policy gets all GPUs. Not here: training, which has trainers and
generators at once (`training.engines.placement`).
"""

from __future__ import annotations

from collections.abc import Iterator

from curation.config import NamedModels, Recipe, VllmPolicy
from curation.policies.vllm.placement import replica_count
from curation.records import ConfigError


def replica_overrides(recipe: Recipe, gpus: int) -> list[str]:
    """Return the settings with which every vLLM policy of a recipe uses all GPUs; replicas that it states stay.

    Raises:
        ConfigError: a policy needs more GPUs than there are.
    """
    changes = []
    for key, policy in vllm_models(recipe):
        if gpus and policy.engine_gpus > gpus:
            wide = f"{key}.tensor_parallel = {policy.tensor_parallel}"
            if policy.data_parallel > 1:
                wide += f" times data_parallel = {policy.data_parallel}"
            raise ConfigError(f"{wide} is more than the {gpus} GPUs that there are; lower it, or give more GPUs.")
        count = replica_count("auto", policy.engine_gpus, gpus)
        if policy.replicas == 1 and count > 1:
            changes.append(f"{key}.replicas={count}")
    return changes


def vllm_models(recipe: NamedModels) -> Iterator[tuple[str, VllmPolicy]]:
    """Yield every vLLM model of a recipe under its dotted key."""
    for name, model in recipe.models.items():
        if isinstance(model, VllmPolicy):
            yield f"models.{name}", model
