"""Sets the models' copies for `--gpus`; engines run in turn, each on all GPUs."""

from __future__ import annotations

from curation.config import Recipe, VllmModel
from curation.records import ConfigError


def copies_overrides(recipe: Recipe, gpus: int) -> list[str]:
    """Return settings by which vLLM policies use all GPUs, if they are enough; a given `data_parallel` stays."""
    changes = []
    for name, policy in recipe.models.items():
        if not isinstance(policy, VllmModel):
            continue
        copies = policy.copies(gpus)
        if gpus and policy.tensor_parallel * copies > gpus:
            wide = f"models.{name}.tensor_parallel = {policy.tensor_parallel}"
            if copies > 1:
                wide += f" times data_parallel = {copies}"
            raise ConfigError(f"{wide} is more than the {gpus} GPUs that there are; lower it, or give more GPUs.")
        count = gpus // policy.tensor_parallel
        if policy.data_parallel == 1 and count > 1:
            changes.append(f"models.{name}.data_parallel={count}")
    return changes
