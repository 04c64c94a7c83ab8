"""Which GPUs do what, before anything starts: pure functions of a recipe and of what the machines have.

Invariants: nothing is asked of a machine here (`curation.policies.vllm.placement.visible_gpus` does, and is called by
those who start); the same arguments give the same placement; no GPU is given twice, but where trainer and generators
take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from curation.records import ConfigError
from training.engines.verl.settings import VerlSettings
from training.recipe import TrainRecipe


@dataclass(frozen=True, slots=True)
class EmbeddedPlacement:
    """Where the embedded engine trains: so many processes, and the GPUs that each of them sees, by their names.

    ``generator_gpu`` is that of an engine in rank 0's process; it is among ``visible``. No GPU: one process on the CPU.

    Example: ``EmbeddedPlacement(3, ("0", "1", "2", "3"), "3")``: ranks on GPUs 0 to 2, vLLM on GPU 3.
    """

    processes: int
    visible: tuple[str, ...] = ()
    generator_gpu: str | None = None


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


def place_embedded(recipe: TrainRecipe, gpus: Sequence[str]) -> EmbeddedPlacement:
    """Return where the embedded engine trains on one machine.

    Args:
        gpus: names of the GPUs that may be used, as `CUDA_VISIBLE_DEVICES` takes them.

    Raises:
        ConfigError: the recipe asks for a GPU, and there is none; or for two, and there is one.
    """
    if not recipe.compute.device.startswith("cuda"):
        return EmbeddedPlacement(1, tuple(gpus))
    if not gpus:
        raise ConfigError(
            f"recipe {recipe.name}: compute.device = {recipe.compute.device!r} and no GPU is to be seen; start it "
            "where there is one, or set compute.device=cpu."
        )
    generator = recipe.generator
    if recipe.compute.device != "cuda":  # one GPU by its number: one process
        return EmbeddedPlacement(1, tuple(gpus))
    apart = generator.kind == "vllm" and generator.transfer == "nccl"
    if not apart:
        return EmbeddedPlacement(len(gpus), tuple(gpus))
    if len(gpus) < 2:
        raise ConfigError(
            f'recipe {recipe.name}: generator.transfer = "nccl" needs a GPU of its own for the engine, and one is to '
            "be seen; set generator.transfer=ipc, or give two."
        )
    return EmbeddedPlacement(len(gpus) - 1, tuple(gpus), gpus[-1])


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
