"""Divide GPUs between training and generation by a recipe; no machine is queried."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from curation.config import EndpointModel, VllmModel
from curation.config.schedule import TrainingCosts
from curation.policies.vllm.engine import gpu_shares
from curation.records import ConfigError
from training.embedded_model import resolve_model
from training.optimisation.memory import MODEL_SHAPES, ModelShape, estimate_memory
from training.recipe import TrainRecipe
from training.workload import workload

EXPERT_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
"""Keys of the number of experts in config.json."""


@dataclass(frozen=True, slots=True)
class EmbeddedPlacement:
    """The GPUs of ranks and generator servers; none on a CPU."""

    processes: int
    visible: tuple[str, ...] = ()
    generators: tuple[tuple[str, ...], ...] = ()
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class VerlPlacement:
    """verl's nodes and GPUs; 0 for rollouts if all GPUs do both in turns."""

    trainer_nodes: int
    trainer_gpus: int
    rollout_nodes: int = 0
    rollout_gpus: int = 0
    why: str = field(default="", compare=False)
    expert_parallel: int = field(default=0, compare=False)
    """GPUs per copy of the experts, or 0."""

    @property
    def trainers(self) -> int:
        return self.trainer_nodes * self.trainer_gpus

    @property
    def generators(self) -> int:
        return self.rollout_nodes * self.rollout_gpus or self.trainers


def place_embedded(
    recipe: TrainRecipe, gpus: Sequence[str], folder: Path = Path(), *, trainers: int | None = None
) -> EmbeddedPlacement:
    """Return the embedded engine's placement on one machine; missing ``trainers`` are chosen."""
    device, model, count = recipe.compute.device, recipe.trained, len(gpus)
    if device.startswith("cuda") and not gpus:
        raise ConfigError(
            f"recipe {recipe.name}: compute.device = {device!r} and no GPU is visible; start it "
            "where there is one, or set compute.device=cpu."
        )
    if device != "cuda" or (isinstance(model, VllmModel) and count == 1):
        return EmbeddedPlacement(1, tuple(gpus))  # the CPU, or one GPU
    if not isinstance(model, VllmModel):
        return EmbeddedPlacement(trainers or count, tuple(gpus[:trainers]))
    unit = model.tensor_parallel
    splits = [
        (training, (count - training) // unit * unit)
        for training in ([trainers] if trainers is not None else range(1, count))
        if training and count - training >= unit
    ]
    if not splits:
        raise ConfigError(
            f"recipe {recipe.name}: {count} GPUs cannot be divided between training (--trainer-gpus {trainers or 1}) "
            f"and generators of {unit} each; give more GPUs, or let fewer train. A single GPU does both."
        )
    if trainers is None:
        (training, generating), why = _best_split(recipe, count, splits, folder)
    else:
        (training, generating), why = splits[0], f"{trainers} of {count} GPUs train, as stated"
    shares = gpu_shares(gpus[training:], generating // unit, unit)
    return EmbeddedPlacement(training, tuple(gpus[:training]), tuple(shares), why)


def _best_split(
    recipe: TrainRecipe, gpus: int, splits: Sequence[tuple[int, int]], folder: Path
) -> tuple[tuple[int, int], str]:
    """Return the (trainers, generators) of the shortest run, or the evenest without costs, and the reason."""
    costs = recipe.costs
    half = min(splits, key=lambda split: (gpus - sum(split), abs(split[0] - split[1]), -split[0]))
    begun = f"{half[0]} of {gpus} GPUs train: half, "
    if costs is None:
        return half, f"{begun}as the recipe has no [costs]"
    try:
        work = workload(recipe, costs, f"recipe {recipe.name}")
    except ConfigError as error:
        return half, f"{begun}as [costs] is incomplete ({error})"
    shape = model_shape(recipe, costs, folder)
    fits = [split for split in splits if trainer_memory(recipe, shape, split[0]) <= costs.gpu_gb * 1e9]
    if not fits:
        return half, f"{begun}as no split has enough memory by the estimate"

    def hours(split: tuple[int, int]) -> float:
        return work.hours(*split, waits=recipe.synchronous)

    best = min(fits, key=lambda split: (hours(split), gpus - sum(split), -split[0]))
    return best, f"{best[0]} of {gpus} GPUs train and {best[1]} generate: {hours(best):.3g} hours by [costs]"


def place_verl(recipe: TrainRecipe, gpus_per_node: int, folder: Path = Path(), *, experts: bool) -> VerlPlacement:
    """Return verl's placement; ``folder`` is the recipe's."""
    settings, nodes, gpus = recipe.verl, recipe.verl.nodes, gpus_per_node
    training, generating = settings.sequence_parallel, recipe.tensor_parallel  # GPUs per copy of the model
    expert_gpus = 0
    if experts:  # by Megatron, as FSDP does not split experts; half of a single node trains
        expert_gpus = gpus if nodes > 1 else 1 << max((gpus // 2).bit_length() - 1, 0)
        training = math.lcm(training, expert_gpus)
    if recipe.synchronous:
        placements = [VerlPlacement(nodes, gpus)]
    elif nodes > 1:
        placements = [VerlPlacement(nodes - count, gpus, count, gpus) for count in range(1, nodes)]
    else:
        placements = [VerlPlacement(1, gpus - count, 1, count) for count in range(1, gpus)]
    placements = [
        placement
        for placement in placements
        if placement.trainers % training == 0 and placement.generators % generating == 0
    ]
    if not placements:
        raise ConfigError(
            f"recipe {recipe.name}: {nodes} x {gpus} GPUs cannot be divided: a copy of the model takes {training} GPUs "
            f"to train and {generating} to generate; change verl.nodes, verl.gpus_per_node, verl.sequence_parallel or "
            "tensor_parallel of the model, or set collector.max_staleness=0, with which all GPUs do both in turns."
        )
    if recipe.synchronous:
        return replace(placements[0], expert_parallel=expert_gpus)
    splits = {(placement.trainers, placement.generators): placement for placement in placements}
    minibatch = math.gcd(*(collector.minibatch_size for collector in recipe.collectors))
    even = [split for split in splits if minibatch % max(split[0] // settings.sequence_parallel, 1) == 0]
    best, why = _best_split(recipe, nodes * gpus, even or list(splits), folder)
    return replace(splits[best], why=why, expert_parallel=expert_gpus)


def trainer_memory(recipe: TrainRecipe, shape: ModelShape, trainers: int) -> float:
    """Return the estimated bytes on each training GPU."""
    from training.objectives.registry import needs_of  # needs torch

    needs = needs_of(recipe.objective)
    return estimate_memory(
        shape,
        trainers,
        recipe.packing.micro_batch_tokens,  # of each GPU, also if verl splits sequences
        checkpointing=recipe.compute.activation_checkpointing,
        dtype_bytes=2 if recipe.compute.dtype == "bfloat16" else 4,
        reference=needs.uses_reference or needs.teacher is not None,
        lora_rank=recipe.lora.rank if recipe.lora is not None else 0,
    ).total


def model_shape(recipe: TrainRecipe, costs: TrainingCosts, folder: Path) -> ModelShape:
    """Return the model's sizes from the costs or its config.json; ``folder`` is the recipe's."""
    if costs.shape in MODEL_SHAPES:
        return MODEL_SHAPES[costs.shape]
    path = resolve_model(costs.shape or recipe.trained.model, folder) / "config.json"
    try:
        return ModelShape.of(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(
            f"recipe {recipe.name}: the sizes of its model cannot be read ({path}); fetch the model, or state "
            f"costs.shape, one of {', '.join(MODEL_SHAPES)}."
        ) from error


def stated_gpus(recipe: TrainRecipe, folder: Path) -> tuple[int, int, bool]:
    """Return training and generating GPUs by `[costs]` (0 on a CPU), and whether they are the same."""
    costs = recipe.costs
    assert costs is not None
    if recipe.engine == "verl":
        per_node = costs.gpus if recipe.verl.gpus_per_node == "auto" else recipe.verl.gpus_per_node
        placed = place_verl(recipe, per_node, folder, experts=False)
        return placed.trainers, placed.generators, recipe.synchronous
    if not recipe.compute.device.startswith("cuda"):
        return 0, 0, True
    ranks = place_embedded(recipe, [str(number) for number in range(costs.gpus)], folder)
    if ranks.generators:
        return ranks.processes, sum(map(len, ranks.generators)), False
    if isinstance(recipe.trained, EndpointModel):
        return ranks.processes, len(recipe.trained.urls), False
    return ranks.processes, 1, True  # rank 0 generates
