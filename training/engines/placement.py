"""Which GPUs do what, before anything starts: pure functions of a recipe and of what the machines have.

On one machine the GPUs are parted where the recipe's generator is vLLM: some train, each of the others (each
`tensor_parallel` of them) is a generator server's. How many train is what makes the run shortest by the figures of the
recipe's `[costs]`, of those with memory enough for the model; half of them where it states none.

Invariants: nothing is asked of a machine here (`curation.policies.vllm.placement.visible_gpus` does, and is called by
those who start); the same arguments give the same placement; no GPU is given twice, but where trainer and generators
take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from curation.policies.vllm.placement import gpu_shares
from curation.records import ConfigError
from training.engines.verl.settings import VerlSettings
from training.generation.vllm_settings import VllmGeneratorSettings
from training.optimisation.memory import ModelShape
from training.recipe import TrainRecipe
from training.workload import Workload, memory_of, workload


@dataclass(frozen=True, slots=True)
class EmbeddedPlacement:
    """Where the embedded engine trains: so many processes, the GPUs that they see, and those of each generator server.

    No GPU: one process on the CPU. No servers: rank 0 generates, or servers that somebody else has started. ``why``
    says in a line how GPUs were shared out, and is empty where they were not.

    Example: ``EmbeddedPlacement(2, ("0", "1"), (("2",), ("3",)))``: ranks on GPUs 0 and 1, vLLM on each of 2 and 3.
    """

    processes: int
    visible: tuple[str, ...] = ()
    generators: tuple[tuple[str, ...], ...] = ()
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class VerlPlacement:
    """Where verl trains and generates: nodes, and GPUs of each.

    ``rollout_nodes`` is 0 where all GPUs do both in turns; then ``rollout_gpus`` is 0 too.

    Example: ``VerlPlacement(2, 8, 2, 8)``: of four nodes of eight GPUs, two train and two generate.
    """

    trainer_nodes: int
    trainer_gpus: int
    rollout_nodes: int = 0
    rollout_gpus: int = 0

    @property
    def trainers(self) -> int:
        """Return how many GPUs train."""
        return self.trainer_nodes * self.trainer_gpus

    @property
    def generators(self) -> int:
        """Return how many GPUs generate."""
        return self.rollout_nodes * self.rollout_gpus or self.trainers


def place_embedded(
    recipe: TrainRecipe, gpus: Sequence[str], *, trainers: int | None = None, shape: ModelShape | None = None
) -> EmbeddedPlacement:
    """Return where the embedded engine trains on one machine.

    Args:
        gpus: names of the GPUs that may be used, as `CUDA_VISIBLE_DEVICES` takes them.
        trainers: how many of them train, where somebody says so.
        shape: the model's sizes, by which memory is estimated; where absent any number of GPUs holds it.

    Raises:
        ConfigError: the recipe asks for a GPU, and there is none; or nothing would be left for one of both.
    """
    device, generator = recipe.compute.device, recipe.generator
    if device.startswith("cuda") and not gpus:
        raise ConfigError(
            f"recipe {recipe.name}: compute.device = {device!r} and no GPU is to be seen; start it "
            "where there is one, or set compute.device=cpu."
        )
    if device != "cuda":  # the CPU, or one GPU by its number: one process
        return EmbeddedPlacement(1, tuple(gpus))
    if not isinstance(generator, VllmGeneratorSettings) or generator.transfer == "ipc":
        return EmbeddedPlacement(trainers or len(gpus), tuple(gpus[:trainers]))
    if len(gpus) == 1 and generator.transfer != "nccl":
        return EmbeddedPlacement(1, tuple(gpus))
    training, why = _trainers(recipe, generator, len(gpus), trainers, shape)
    servers = (len(gpus) - training) // generator.tensor_parallel
    if training < 1 or servers < 1:
        raise ConfigError(
            f"recipe {recipe.name}: of {len(gpus)} GPUs {training} would train and {len(gpus) - training} are left for "
            f"generators of {generator.tensor_parallel} each; give more GPUs, state how many train (--trainer-gpus or "
            "costs.trainer_gpus), or set generator.transfer=ipc, with which one GPU does both."
        )
    shares = gpu_shares(gpus[training:], servers, generator.tensor_parallel)
    return EmbeddedPlacement(training, tuple(gpus[:training]), tuple(shares), why)


def _trainers(
    recipe: TrainRecipe, generator: VllmGeneratorSettings, gpus: int, said: int | None, shape: ModelShape | None
) -> tuple[int, str]:
    """Return how many GPUs train, and why."""
    costs, unit = recipe.costs, generator.tensor_parallel
    if said is None and costs is not None and costs.gpus == gpus:
        said = costs.trainer_gpus
    if said is not None:
        return said, f"{said} of {gpus} GPUs train, as is said"
    half = gpus - gpus // 2 // unit * unit
    if costs is None:
        return half, f"{half} of {gpus} GPUs train: half, for the recipe states no [costs] to share them out by"
    try:
        work = workload(recipe, costs, f"recipe {recipe.name}")
    except ConfigError as error:
        return half, f"{half} of {gpus} GPUs train: half, for [costs] does not say all ({error})"
    fits = [
        count
        for count in range(recipe.compute.replicas, gpus - unit + 1, recipe.compute.replicas)
        if shape is None or memory_of(recipe, shape, count).total <= costs.gpu_gb * 1e9
    ]
    if not fits:
        return half, f"{half} of {gpus} GPUs train: half, for by the estimate no number of them has memory enough"
    chosen = shortest_split(work, gpus, unit, fits, waits=recipe.synchronous)
    generators = (gpus - chosen) // unit * unit
    hours = work.hours(chosen, generators, waits=recipe.synchronous)
    return chosen, f"{chosen} of {gpus} GPUs train and {generators} generate: {hours:.3g} hours by [costs]"


def shortest_split(work: Workload, gpus: int, unit: int, trainers: Sequence[int], *, waits: bool) -> int:
    """Return which of these numbers of trainers makes a run shortest; of equal ones the one that leaves no GPU idle.

    Args:
        unit: GPUs of one generator; those that are left over and too few for one do nothing.
        waits: whether generating and training wait for each other.
    """

    def cost(training: int) -> tuple[float, int, int]:
        generating = (gpus - training) // unit * unit
        return work.hours(training, generating, waits=waits), gpus - training - generating, -training

    return min(trainers, key=cost)


def place_verl(settings: VerlSettings, gpus_per_node: int, *, synchronous: bool, experts: bool) -> VerlPlacement:
    """Return where verl trains and generates.

    Several nodes are shared out whole; one node's GPUs are. Both parts are multiples of what one copy of the model is
    cut over.

    Args:
        gpus_per_node: of each node.
        synchronous: whether the generators wait for each step; then all GPUs do both.
        experts: whether the model is a mixture of experts.

    Raises:
        ConfigError: the GPUs cannot be shared out so.
    """
    nodes, trainer_unit = settings.nodes, training_unit(settings, gpus_per_node, experts=experts)
    rollout_unit = settings.rollout_tensor_parallel
    if synchronous:
        _require_multiple("train", nodes * gpus_per_node, trainer_unit)
        _require_multiple("generate", nodes * gpus_per_node, rollout_unit)
        return VerlPlacement(nodes, gpus_per_node)
    if nodes > 1:
        generating = min(max(round(nodes * settings.rollout_share), 1), nodes - 1)
        placed = VerlPlacement(nodes - generating, gpus_per_node, generating, gpus_per_node)
    else:
        if gpus_per_node < 2:
            raise ConfigError(
                "verl needs a GPU for training and one for generating, and there is one; set "
                "collector.max_staleness=0, with which one does both in turns, or give two."
            )
        asked = max(round(gpus_per_node * settings.rollout_share), rollout_unit)
        generating = min(asked, max(gpus_per_node - trainer_unit, 1)) // rollout_unit * rollout_unit
        training = (gpus_per_node - generating) // trainer_unit * trainer_unit
        if not training or not generating:
            raise ConfigError(
                f"{gpus_per_node} GPUs cannot hold a copy of the model that is cut over {trainer_unit} for training "
                f"and one that is cut over {rollout_unit} for generating; lower verl.sequence_parallel or "
                "verl.rollout_tensor_parallel, or set collector.max_staleness=0."
            )
        placed = VerlPlacement(1, training, 1, gpus_per_node - training)
    _require_multiple("train", placed.trainers, trainer_unit)
    _require_multiple("generate", placed.generators, rollout_unit)
    return placed


def training_unit(settings: VerlSettings, gpus_per_node: int, *, experts: bool) -> int:
    """Return over how many GPUs one copy of the model is cut for training, but for what FSDP shards."""
    if not uses_megatron(settings, experts=experts):
        return settings.sequence_parallel
    parallel = expert_parallel(settings, gpus_per_node)
    return settings.sequence_parallel * parallel // _common(settings.sequence_parallel, parallel)


def uses_megatron(settings: VerlSettings, *, experts: bool) -> bool:
    """Return whether the trainer is Megatron's."""
    return settings.backend == "megatron" or (settings.backend == "auto" and experts)


def expert_parallel(settings: VerlSettings, gpus_per_node: int) -> int:
    """Return over how many GPUs the experts are dealt out with Megatron."""
    if settings.expert_parallel != "auto":
        return settings.expert_parallel
    if settings.nodes > 1:
        return gpus_per_node
    return 1 << max((gpus_per_node // 2).bit_length() - 1, 0)  # half of a single node trains


def _common(one: int, other: int) -> int:
    while other:
        one, other = other, one % other
    return one


def _require_multiple(what: str, gpus: int, unit: int) -> None:
    if gpus % unit:
        raise ConfigError(
            f"{gpus} GPUs would {what}, and one copy of the model is cut over {unit}, which does not divide them; "
            "change verl.rollout_share, verl.nodes, or what cuts the model."
        )
