"""The generators of a run by the embedded engine, as its recipe names them."""

from __future__ import annotations

from pathlib import Path

import torch.distributed as dist

from training.generation.generators import Generator, TorchGenerator
from training.recipe import TrainRecipe


def build_generators(recipe: TrainRecipe, folder: Path) -> list[Generator]:
    """Build the recipe's generators, not yet running."""
    settings, n_async, head = recipe.generator, recipe.collector.n_async, recipe.compute.head_dtype
    if settings.kind == "vllm":
        from training.generation.vllm_generators import VllmGenerator

        return [VllmGenerator(folder, settings, temperature=recipe.temperature, capacity=n_async, head_dtype=head)]
    if settings.kind == "endpoint":
        from training.generation.endpoint_generators import EndpointGenerator

        copies = recipe.compute.dtype != "float32" or (dist.is_initialized() and dist.get_world_size() > 1)
        device = recipe.compute.device
        return [EndpointGenerator(folder, settings, temperature=recipe.temperature, device=device, lasting=copies)]
    return [
        TorchGenerator(
            folder,
            capacity=n_async,
            temperature=recipe.temperature,
            dtype=settings.dtype,
            device=settings.device,
            head_dtype=head,
        )
    ]
