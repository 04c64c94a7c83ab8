"""Divide GPUs between training and generation by a recipe.

Invariants: no machine is queried; no GPU is given twice, unless trainer and generators take turns.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from curation.config import EndpointModel, VllmModel
from curation.config.schedule import TrainingCosts
from curation.policies.vllm.placement import gpu_shares
from curation.records import ConfigError
from training.embedded_model import resolve_model
from training.engines.verl.settings import VerlSettings
from training.optimisation.memory import MODEL_SHAPES, ModelShape, estimate_memory
from training.recipe import TrainRecipe
from training.workload import stage_collectors, workload

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

    @property
    def trainers(self) -> int:
        """Return the GPUs that train."""
        return self.trainer_nodes * self.trainer_gpus

    @property
    def generators(self) -> int:
        """Return the GPUs that generate."""
        return self.rollout_nodes * self.rollout_gpus or self.trainers


def place_embedded(
    recipe: TrainRecipe, gpus: Sequence[str], *, trainers: int | None = None, shape: ModelShape | None = None
) -> EmbeddedPlacement:
    """Return the embedded engine's placement on one machine.

    Args:
        trainers: number of GPUs that train; chosen if missing.

    Raises:
        ConfigError: a required GPU is missing, or none is left to train or to generate.
    """
    device, model = recipe.compute.device, recipe.trained
    if device.startswith("cuda") and not gpus:
        raise ConfigError(
            f"recipe {recipe.name}: compute.device = {device!r} and no GPU is to be seen; start it "
            "where there is one, or set compute.device=cpu."
        )
    if device != "cuda":  # the CPU, or one GPU by its number: one process
        return EmbeddedPlacement(1, tuple(gpus))
    if not isinstance(model, VllmModel):
        return EmbeddedPlacement(trainers or len(gpus), tuple(gpus[:trainers]))
    if len(gpus) == 1:
        return EmbeddedPlacement(1, tuple(gpus))
    training, why = _trainers(recipe, model.tensor_parallel, len(gpus), trainers, shape)
    servers = (len(gpus) - training) // model.tensor_parallel
    if training < 1 or servers < 1:
        raise ConfigError(
            f"recipe {recipe.name}: of {len(gpus)} GPUs {training} would train and {len(gpus) - training} are left for "
            f"generators of {model.tensor_parallel} each; give more GPUs, or state "
            "how many train (--trainer-gpus). A single GPU does both."
        )
    shares = gpu_shares(gpus[training:], servers, model.tensor_parallel)
    return EmbeddedPlacement(training, tuple(gpus[:training]), tuple(shares), why)


def _trainers(recipe: TrainRecipe, unit: int, gpus: int, said: int | None, shape: ModelShape | None) -> tuple[int, str]:
    if said is not None:
        return said, f"{said} of {gpus} GPUs train, as stated"
    half = gpus - gpus // 2 // unit * unit
    splits = [(count, (gpus - count) // unit * unit) for count in range(1, gpus - unit + 1)]
    chosen, why = _shortest(recipe, gpus, half, splits, shape)
    return half if chosen is None else splits[chosen][0], why


def _shortest(
    recipe: TrainRecipe, gpus: int, half: int, splits: Sequence[tuple[int, int]], shape: ModelShape | None
) -> tuple[int | None, str]:
    """Return the index of the split with the shortest run (None without figures), and the reason."""
    costs, begun = recipe.costs, f"{half} of {gpus} GPUs train: half, for "
    if costs is None:
        return None, f"{begun}the recipe states no [costs] to share them out by"
    try:
        work = workload(recipe, costs, f"recipe {recipe.name}")
    except ConfigError as error:
        return None, f"{begun}[costs] does not say all ({error})"
    fits = [
        place
        for place, (trainers, _) in enumerate(splits)
        if shape is None or trainer_memory(recipe, shape, trainers) <= costs.gpu_gb * 1e9
    ]
    if not fits:
        return None, f"{begun}by the estimate no number of them has memory enough"

    def cost(place: int) -> tuple[float, int, int]:
        trainers, generators = splits[place]
        hours = work.hours(trainers, generators, waits=recipe.synchronous)
        return hours, gpus - trainers - generators, -trainers

    chosen = min(fits, key=cost)
    trainers, generators = splits[chosen]
    why = f"{trainers} of {gpus} GPUs train and {generators} generate: {cost(chosen)[0]:.3g} hours by [costs]"
    return chosen, why


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
    """Return the model's sizes, stated or from its folder; ``folder`` is the recipe's.

    Raises:
        ConfigError: neither is there.
    """
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
        placed = place_verl(recipe, per_node, experts=False, shape=model_shape(recipe, costs, folder))
        return placed.trainers, placed.generators, recipe.synchronous
    if not recipe.compute.device.startswith("cuda"):
        return 0, 0, True
    names = [str(number) for number in range(costs.gpus)]
    ranks = place_embedded(recipe, names, shape=model_shape(recipe, costs, folder))
    if ranks.generators:
        return ranks.processes, sum(map(len, ranks.generators)), False
    if isinstance(recipe.trained, EndpointModel):
        return ranks.processes, len(recipe.trained.urls), False
    return ranks.processes, 1, True  # rank 0 generates


def place_verl(
    recipe: TrainRecipe, gpus_per_node: int, *, experts: bool, shape: ModelShape | None = None
) -> VerlPlacement:
    """Return verl's placement with the shortest run; half and half without figures.

    Raises:
        ConfigError: the GPUs cannot be divided.
    """
    settings, synchronous = recipe.verl, recipe.synchronous
    half = place_verl_by_settings(
        settings, gpus_per_node, recipe.tensor_parallel, synchronous=synchronous, experts=experts
    )
    if synchronous:
        return half
    placements = [
        placed
        for placed in _verl_placements(settings, gpus_per_node, recipe.tensor_parallel, experts=experts)
        if _deals_evenly(recipe, placed.trainers)
    ]
    splits = [(placed.trainers, placed.generators) for placed in placements]
    chosen, why = _shortest(recipe, settings.nodes * gpus_per_node, half.trainers, splits, shape)
    return replace(half if chosen is None else placements[chosen], why=why)


def _deals_evenly(recipe: TrainRecipe, trainers: int) -> bool:
    copies = max(trainers // recipe.verl.sequence_parallel, 1)
    return all(collector.minibatch_size % copies == 0 for collector in stage_collectors(recipe))


def _verl_placements(
    settings: VerlSettings, gpus_per_node: int, tensor_parallel: int, *, experts: bool
) -> Iterator[VerlPlacement]:
    parts = settings.nodes if settings.nodes > 1 else gpus_per_node
    for generating in range(1, parts):
        with contextlib.suppress(ConfigError):
            yield place_verl_by_settings(
                settings, gpus_per_node, tensor_parallel, synchronous=False, experts=experts, share=generating / parts
            )


def place_verl_by_settings(
    settings: VerlSettings,
    gpus_per_node: int,
    rollout_unit: int = 1,
    *,
    synchronous: bool,
    experts: bool,
    share: float = 0.5,
) -> VerlPlacement:
    """Return verl's placement by its settings alone.

    Args:
        rollout_unit: GPUs per copy of the model for generation.
        share: fraction of GPUs that only generate.

    Raises:
        ConfigError: the GPUs cannot be divided.
    """
    nodes, trainer_unit = settings.nodes, training_unit(settings, gpus_per_node, experts=experts)
    if synchronous:
        _require_multiple("train", nodes * gpus_per_node, trainer_unit)
        _require_multiple("generate", nodes * gpus_per_node, rollout_unit)
        return VerlPlacement(nodes, gpus_per_node)
    if nodes > 1:
        generating = min(max(round(nodes * share), 1), nodes - 1)
        placed = VerlPlacement(nodes - generating, gpus_per_node, generating, gpus_per_node)
    else:
        if gpus_per_node < 2:
            raise ConfigError(
                "verl needs a GPU for training and one for generating, and there is one; set "
                "collector.max_staleness=0, with which one does both in turns, or give two."
            )
        asked = max(round(gpus_per_node * share), rollout_unit)
        generating = min(asked, max(gpus_per_node - trainer_unit, 1)) // rollout_unit * rollout_unit
        training = (gpus_per_node - generating) // trainer_unit * trainer_unit
        if not training or not generating:
            raise ConfigError(
                f"{gpus_per_node} GPUs cannot hold a copy of the model that is cut over {trainer_unit} for training "
                f"and one that is cut over {rollout_unit} for generating; lower verl.sequence_parallel or "
                "tensor_parallel of the model, or set collector.max_staleness=0."
            )
        placed = VerlPlacement(1, training, 1, gpus_per_node - training)
    _require_multiple("train", placed.trainers, trainer_unit)
    _require_multiple("generate", placed.generators, rollout_unit)
    return placed


def training_unit(settings: VerlSettings, gpus_per_node: int, *, experts: bool) -> int:
    """Return the GPUs per model copy in training, FSDP's sharding aside."""
    if not experts:  # FSDP; a mixture of experts is Megatron's
        return settings.sequence_parallel
    return math.lcm(settings.sequence_parallel, expert_parallel(settings, gpus_per_node))


def expert_parallel(settings: VerlSettings, gpus_per_node: int) -> int:
    """Return how many GPUs Megatron splits the experts over."""
    if settings.nodes > 1:
        return gpus_per_node
    return 1 << max((gpus_per_node // 2).bit_length() - 1, 0)  # half of a single node trains


def _require_multiple(what: str, gpus: int, unit: int) -> None:
    if gpus % unit:
        raise ConfigError(
            f"{gpus} GPUs would {what}, and one copy of the model is cut over {unit}, which does not divide them; "
            "change verl.nodes, verl.gpus_per_node, or what cuts the model."
        )
