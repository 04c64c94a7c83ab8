"""Where training goes: on GPUs of one machine, and on nodes of a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from curation.records import ConfigError
from training.engines.placement import EmbeddedPlacement, VerlPlacement, place_embedded, place_verl
from training.engines.verl.settings import VerlSettings
from training.recipe import TrainRecipe


def recipe(**changes: Any) -> TrainRecipe:
    table = {"name": "t", "steps": 1, "model": "embedded", "data": {"kind": "embedded"}, **changes}
    return TrainRecipe.model_validate(table)


def test_the_embedded_engine_takes_all_gpus_of_the_machine() -> None:
    cuda = recipe(compute={"device": "cuda"})
    assert place_embedded(recipe(), ()) == EmbeddedPlacement(1)
    assert place_embedded(recipe(), ("0", "1")) == EmbeddedPlacement(1, ("0", "1"))  # the model is on the CPU
    assert place_embedded(cuda, ("2", "3", "5")) == EmbeddedPlacement(3, ("2", "3", "5"))
    assert place_embedded(recipe(compute={"device": "cuda:1"}), ("0", "1")) == EmbeddedPlacement(1, ("0", "1"))
    with pytest.raises(ConfigError, match="no GPU is to be seen"):
        place_embedded(cuda, ())


def test_an_engine_that_gets_weights_by_nccl_has_a_gpu_of_its_own() -> None:
    apart = recipe(compute={"device": "cuda"}, generator={"kind": "vllm", "transfer": "nccl"})
    assert place_embedded(apart, tuple("0123")) == EmbeddedPlacement(3, tuple("0123"), "3")
    with pytest.raises(ConfigError, match="needs a GPU of its own"):
        place_embedded(apart, ("0",))


@pytest.mark.parametrize(
    ("settings", "gpus", "synchronous", "experts", "placed"),
    [
        ({}, 8, False, False, VerlPlacement(1, 4, 1, 4)),
        ({}, 8, True, False, VerlPlacement(1, 8)),
        ({"nodes": 4}, 8, False, False, VerlPlacement(2, 8, 2, 8)),
        ({"nodes": 32, "rollout_share": 0.75}, 8, False, True, VerlPlacement(8, 8, 24, 8)),
        ({"rollout_share": 0.9, "rollout_tensor_parallel": 2}, 8, False, False, VerlPlacement(1, 2, 1, 6)),
        ({"nodes": 2, "rollout_share": 0.01}, 8, False, False, VerlPlacement(1, 8, 1, 8)),
        ({}, 8, False, True, VerlPlacement(1, 4, 1, 4)),
    ],
)
def test_verl_shares_the_gpus_out(
    settings: dict[str, Any], gpus: int, synchronous: bool, experts: bool, placed: VerlPlacement
) -> None:
    assert place_verl(VerlSettings(**settings), gpus, synchronous=synchronous, experts=experts) == placed


def test_counts_of_a_placement() -> None:
    assert (VerlPlacement(2, 8, 1, 4).trainers, VerlPlacement(2, 8, 1, 4).generators) == (16, 4)
    assert VerlPlacement(2, 8).generators == 16


@pytest.mark.parametrize(
    ("settings", "gpus", "synchronous", "said"),
    [
        ({}, 1, False, "set collector.max_staleness=0"),
        ({"sequence_parallel": 3}, 8, True, "8 GPUs would train, and one copy of the model is cut over 3"),
        ({"rollout_tensor_parallel": 3}, 8, True, "8 GPUs would generate"),
        ({"sequence_parallel": 8}, 8, False, "8 GPUs cannot hold a copy of the model that is cut over 8"),
    ],
)
def test_gpus_that_cannot_be_shared_out_are_refused(
    settings: dict[str, Any], gpus: int, synchronous: bool, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        place_verl(VerlSettings(**settings), gpus, synchronous=synchronous, experts=False)


def test_no_gpu_is_used_twice_and_every_copy_has_its_share() -> None:
    for nodes in (1, 2, 3, 8):
        for gpus in (2, 4, 8):
            for share in (0.1, 0.34, 0.5, 0.8, 0.95):
                for tensor in (1, 2):
                    settings = VerlSettings(nodes=nodes, rollout_share=share, rollout_tensor_parallel=tensor)
                    try:
                        placed = place_verl(settings, gpus, synchronous=False, experts=False)
                    except ConfigError:
                        assert (nodes, gpus, tensor) == (1, 2, 2)
                        continue
                    assert placed.trainers + placed.generators <= nodes * gpus
                    assert min(placed.trainers, placed.generators) > 0
                    assert placed.generators % tensor == 0
