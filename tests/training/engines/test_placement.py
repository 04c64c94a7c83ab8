"""Where training goes: on GPUs of one machine, and on nodes of a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from curation.records import ConfigError
from tests.training.students import student
from training.engines.placement import EmbeddedPlacement, VerlPlacement, place_embedded, place_verl
from training.recipe import TrainRecipe

EIGHT = tuple(str(number) for number in range(8))


def recipe(**changes: Any) -> TrainRecipe:
    table = {"name": "t", "steps": 1, **student(), "data": {"kind": "embedded"}, **changes}
    return TrainRecipe.model_validate(table)


def test_the_embedded_engine_takes_all_gpus_of_the_machine() -> None:
    for device, gpus, processes in (("cpu", (), 1), ("cpu", "01", 1), ("cuda", "235", 3), ("cuda:1", "01", 1)):
        placed = place_embedded(recipe(compute={"device": device}), tuple(gpus))
        assert placed == EmbeddedPlacement(processes, tuple(gpus))
    with pytest.raises(ConfigError, match="no GPU is visible"):
        place_embedded(recipe(compute={"device": "cuda"}), ())


def apart(costs: dict[str, Any] | None = None, **changes: Any) -> TrainRecipe:
    """Return a recipe of one step of 100 rollouts, of 36,000 tokens each."""
    stated = {"gpus": 8, "shape": "7B", "tokens_per_attempt": [36_000.0], "sampled_per_trained": [1.0]}
    stated |= {"tokens_per_s": [100.0], "trained_tokens_per_s": [300.0]}
    table = student(kind="vllm") | {"collector": {"group_size": 10, "n_async": 100, "n_batch": 100}}
    table |= {"compute": {"device": "cuda", "dtype": "bfloat16", "activation_checkpointing": True}}
    return recipe(**{**table, "costs": None if costs is None else stated | costs, **changes})


def test_vllm_and_the_trainer_part_the_gpus_and_without_figures_half_of_them_train() -> None:
    half = place_embedded(apart(), EIGHT)
    assert half == EmbeddedPlacement(4, EIGHT[:4], tuple((name,) for name in EIGHT[4:]))
    assert "half, as the recipe has no [costs]" in half.why
    assert place_embedded(apart(), EIGHT, trainers=6) == EmbeddedPlacement(6, EIGHT[:6], (("6",), ("7",)))
    wide = apart(**student(kind="vllm", tensor_parallel=2))
    assert place_embedded(wide, EIGHT[:6]) == EmbeddedPlacement(4, EIGHT[:4], (("4", "5"),))
    assert place_embedded(apart(), ("0",)) == EmbeddedPlacement(1, ("0",))
    for gpus, trainers in ((EIGHT, 8), (EIGHT[:2], 2)):
        with pytest.raises(ConfigError, match="A single GPU does both"):
            place_embedded(apart(), gpus, trainers=trainers)


def test_the_split_makes_the_run_shortest_by_its_own_figures() -> None:
    """Ten hours of generating and 3 1/3 of training, of one GPU: 2 train and 6 generate, 1 2/3 hours both."""
    placed = place_embedded(apart({"gpu_gb": 141.0}), EIGHT)
    assert (placed.processes, len(placed.generators)) == (2, 6)
    assert placed.why == "2 of 8 GPUs train and 6 generate: 1.67 hours by [costs]"
    assert place_embedded(apart({"tokens_per_s": [900.0]}), EIGHT).processes == 6
    assert place_embedded(apart({}), EIGHT, trainers=5).processes == 5


def test_the_split_leaves_the_trainer_memory_enough() -> None:
    tight = place_embedded(apart({}), EIGHT)
    assert (tight.processes, len(tight.generators)) == (3, 5)  # two would need more than 80 GB each
    none = place_embedded(apart({"gpu_gb": 16.0}), EIGHT)
    assert none.processes == 4
    assert "no split has enough memory" in none.why


ASYNCHRONOUS: dict[str, Any] = {}
IN_TURNS: dict[str, Any] = {"collector": {"max_staleness": 0}}


@pytest.mark.parametrize(
    ("verl", "changes", "experts", "placed"),
    [
        ({}, ASYNCHRONOUS, False, VerlPlacement(1, 4, 1, 4)),
        ({}, IN_TURNS, False, VerlPlacement(1, 8)),
        ({"nodes": 4}, ASYNCHRONOUS, False, VerlPlacement(2, 8, 2, 8)),
        ({"nodes": 32}, ASYNCHRONOUS, True, VerlPlacement(16, 8, 16, 8)),
        ({"sequence_parallel": 5}, ASYNCHRONOUS, False, VerlPlacement(1, 5, 1, 3)),
    ],
)
def test_verl_shares_the_gpus_out_evenly(
    verl: dict[str, Any], changes: dict[str, Any], experts: bool, placed: VerlPlacement
) -> None:
    assert place_verl(recipe(verl=verl, **changes), 8, experts=experts) == placed


def by_figures(nodes: int = 1, shape: str = "7B", **changes: Any) -> TrainRecipe:
    """Return `apart` for verl, with 6,720 rollouts: 14 hours of a GPU that generates and 4.7 of one that trains."""
    costs = {"shape": shape, "gpu_gb": 141.0, "tokens_per_attempt": [750.0], **changes.pop("costs", {})}
    verl = {"nodes": nodes, "gpus_per_node": 8, **changes.pop("verl", {})}
    sizes = {"collector": {"group_size": 8, "n_async": 6720, "n_batch": 6720}}
    return apart(costs, engine="verl", verl=verl, **{**sizes, **changes})


def test_verl_gets_the_split_that_is_shortest_by_the_recipes_figures() -> None:
    placed = place_verl(by_figures(), 8, experts=False)
    assert placed == VerlPlacement(1, 2, 1, 6)
    assert placed.why == "2 of 8 GPUs train and 6 generate: 2.33 hours by [costs]"
    assert place_verl(by_figures(4), 8, experts=False) == VerlPlacement(1, 8, 3, 8)
    cut = by_figures(verl={"sequence_parallel": 4}, **student(kind="vllm", tensor_parallel=2))
    assert place_verl(cut, 8, experts=False) == VerlPlacement(1, 4, 1, 4)
    waiting = by_figures(collector={"group_size": 10, "n_async": 100, "n_batch": 100, "max_staleness": 0})
    assert place_verl(waiting, 8, experts=False) == VerlPlacement(1, 8)


@pytest.mark.parametrize(
    ("verl", "gpus", "changes"),
    [
        ({}, 1, ASYNCHRONOUS),
        ({"sequence_parallel": 3}, 8, IN_TURNS),
        ({}, 8, IN_TURNS | student(kind="vllm", tensor_parallel=3)),
        ({"sequence_parallel": 8}, 8, ASYNCHRONOUS),
    ],
)
def test_gpus_that_cannot_be_shared_out_are_refused(verl: dict[str, Any], gpus: int, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=rf"1 x {gpus} GPUs cannot be divided: .* set collector\.max_staleness=0"):
        place_verl(recipe(verl=verl, **changes), gpus, experts=False)
