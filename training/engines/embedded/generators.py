"""The generators of a run by the embedded engine, as its recipe names them."""

from __future__ import annotations

from pathlib import Path

import torch.distributed as dist

from curation.config import EndpointModel, VllmModel
from training.generation.generators import Generator, TorchGenerator
from training.recipe import TrainRecipe


def build_generators(recipe: TrainRecipe, folder: Path) -> list[Generator]:
    """Build the recipe's generators, not yet running."""
    model, n_async, temperature, compute = recipe.trained, recipe.collector.n_async, recipe.temperature, recipe.compute
    if isinstance(model, VllmModel):
        from training.generation.vllm_generators import VllmGenerator

        return [VllmGenerator(folder, model, temperature=temperature, capacity=n_async)]
    if isinstance(model, EndpointModel):
        from training.generation.endpoint_generators import EndpointGenerator

        copies = compute.dtype != "float32" or (dist.is_initialized() and dist.get_world_size() > 1)
        return [EndpointGenerator(folder, model, temperature=temperature, device=compute.device, lasting=copies)]
    return [
        TorchGenerator(folder, capacity=n_async, temperature=temperature, dtype=compute.dtype, device=compute.device)
    ]
