"""Divide GPUs between training and generation by a recipe.

Invariants: no machine is queried; no GPU is given twice, unless trainer and generators take turns.
"""

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
"""Names of the number of experts in models' configurations."""


@dataclass(frozen=True, slots=True)
class EmbeddedPlacement:
    """The GPUs of ranks and of each generator server; none on a CPU."""

    processes: int
    visible: tuple[str, ...] = ()
    generators: tuple[tuple[str, ...], ...] = ()
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class VerlPlacement:
    """The nodes and GPUs of verl; 0 for rollouts if all GPUs do both in turns."""

    trainer_nodes: int
    trainer_gpus: int
    rollout_nodes: int = 0
    rollout_gpus: int = 0
    why: str = field(default="", compare=False)
    expert_parallel: int = field(default=0, compare=False)
    """GPUs that Megatron splits the experts over; 0 without experts."""

    @property
    def trainers(self) -> int:
        """Return the GPUs that train."""
        return self.trainer_nodes * self.trainer_gpus

    @property
    def generators(self) -> int:
        """Return the GPUs that generate."""
        return self.rollout_nodes * self.rollout_gpus or self.trainers


def place_embedded(
    recipe: TrainRecipe, gpus: Sequence[str], folder: Path = Path(), *, trainers: int | None = None
) -> EmbeddedPlacement:
    """Return the embedded engine's placement on one machine; ``trainers``, GPUs that train, are chosen if missing."""
    device, model, count = recipe.compute.device, recipe.trained, len(gpus)
    if device.startswith("cuda") and not gpus:
        raise ConfigError(
            f"recipe {recipe.name}: compute.device = {device!r} and no GPU is to be seen; start it "
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
    """Return the (trainers, generators) with the shortest run, the evenest without figures, and the reason."""
    costs = recipe.costs
    half = min(splits, key=lambda split: (gpus - sum(split), abs(split[0] - split[1]), -split[0]))
    begun = f"{half[0]} of {gpus} GPUs train: half, for "
    if costs is None:
        return half, f"{begun}the recipe states no [costs] to share them out by"
    try:
        work = workload(recipe, costs, f"recipe {recipe.name}")
    except ConfigError as error:
        return half, f"{begun}[costs] does not say all ({error})"
    shape = model_shape(recipe, costs, folder)
    fits = [split for split in splits if trainer_memory(recipe, shape, split[0]) <= costs.gpu_gb * 1e9]
    if not fits:
        return half, f"{begun}by the estimate no number of them has memory enough"

    def hours(split: tuple[int, int]) -> float:
        return work.hours(*split, waits=recipe.synchronous)

    best = min(fits, key=lambda split: (hours(split), gpus - sum(split), -split[0]))
    return best, f"{best[0]} of {gpus} GPUs train and {best[1]} generate: {hours(best):.3g} hours by [costs]"


def place_verl(recipe: TrainRecipe, gpus_per_node: int, folder: Path = Path(), *, experts: bool) -> VerlPlacement:
    """Return verl's placement; ``folder`` is the recipe's."""
    settings, nodes, gpus = recipe.verl, recipe.verl.nodes, gpus_per_node
    training, generating = settings.sequence_parallel, recipe.tensor_parallel  # GPUs per copy of the model
    parts = 0
    if experts:  # Megatron's; FSDP cuts no experts; half of a single node trains
        parts = gpus if nodes > 1 else 1 << max((gpus // 2).bit_length() - 1, 0)
        training = math.lcm(training, parts)
    if recipe.synchronous:
        places = [VerlPlacement(nodes, gpus)]
    elif nodes > 1:
        places = [VerlPlacement(nodes - count, gpus, count, gpus) for count in range(1, nodes)]
    else:
        places = [VerlPlacement(1, gpus - count, 1, count) for count in range(1, gpus)]
    places = [one for one in places if one.trainers % training == 0 and one.generators % generating == 0]
    if not places:
        raise ConfigError(
            f"recipe {recipe.name}: {nodes} x {gpus} GPUs cannot be divided: a copy of the model takes {training} GPUs "
            f"to train and {generating} to generate; change verl.nodes, verl.gpus_per_node, verl.sequence_parallel or "
            "tensor_parallel of the model, or set collector.max_staleness=0, with which all GPUs do both in turns."
        )
    if recipe.synchronous:
        return replace(places[0], expert_parallel=parts)
    splits = {(one.trainers, one.generators): one for one in places}
    minibatch = math.gcd(*(collector.minibatch_size for collector in recipe.collectors))
    even = [split for split in splits if minibatch % max(split[0] // settings.sequence_parallel, 1) == 0]
    best, why = _best_split(recipe, nodes * gpus, even or list(splits), folder)
    return replace(splits[best], why=why, expert_parallel=parts)


def trainer_memory(recipe: TrainRecipe, shape: ModelShape, trainers: int) -> float:
    """Return the estimated bytes on each training GPU."""
    from training.objectives.registry import needs_of  # needs torch

    needs = needs_of(recipe.objective)
    return estimate_memory(
        shape,
        trainers,
        recipe.packing.micro_batch_tokens,  # of each GPU, also where verl cuts sequences over several
        checkpointing=recipe.compute.activation_checkpointing,
        dtype_bytes=2 if recipe.compute.dtype == "bfloat16" else 4,
        reference=needs.uses_reference or needs.teacher is not None,
        lora_rank=recipe.lora.rank if recipe.lora is not None else 0,
    ).total


def model_shape(recipe: TrainRecipe, costs: TrainingCosts, folder: Path) -> ModelShape:
    """Return the model's sizes, stated or from its folder; ``folder`` is the recipe's."""
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
    """Return training and generating GPUs by `[costs]`, and whether they are the same; 0 on a CPU."""
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
