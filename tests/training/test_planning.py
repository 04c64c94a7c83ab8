"""What a training run is said to cost: the formulas by hand, for each way in which GPUs are shared out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from curation.records import ConfigError
from training.engines.placement import place_embedded
from training.optimisation.memory import MODEL_SHAPES, ModelShape, estimate_memory
from training.planning import plan_training
from training.recipe import TrainRecipe
from training.workload import stage_collectors

COSTS = {
    "gpus": 8,
    "shape": "7B",
    "tokens_per_rollout": [1000.0, 2000.0],
    "sampled_per_trained": [1.5],
    "generated_tokens_per_s": [100.0],
    "trained_tokens_per_s": [400.0],
}
STAGES = {"stages": [{"steps": 3, "lengths": 500, "n_batch": 64, "n_async": 64}, {"n_batch": 32, "n_async": 32}]}
P = MODEL_SHAPES["7B"].num_parameters


def recipe(costs: dict[str, Any] | None = None, **changes: Any) -> TrainRecipe:
    table: dict[str, Any] = {
        "name": "t",
        "steps": 5,
        "model": "nowhere",
        "data": {"kind": "embedded"},
        "generator": {"kind": "vllm"},
        "collector": {"group_size": 16, "n_async": 64, "n_batch": 64},
        "rewards": {"max_length": 1000, "length_cache": 200},
        "curriculum": STAGES,
        "compute": {"device": "cuda", "dtype": "bfloat16", "activation_checkpointing": True},
        "costs": {**COSTS, **(costs or {})},
        **changes,
    }
    return TrainRecipe.model_validate(table)


def test_stages_hours_and_disk_by_hand() -> None:
    plan = plan_training(recipe(), Path(), "recipe t")
    assert (plan.trainers, plan.generators, plan.gpus, plan.taking_turns) == (3, 5, 8, False)
    first, second = plan.stages
    assert (first.steps, first.n_batch, first.max_length, first.trained, first.sampled) == (3, 64, 700, 192, 288)
    assert (second.steps, second.n_batch, second.max_length, second.trained, second.sampled) == (2, 32, 700, 64, 96)
    assert first.sampled_tokens == 288_000
    assert second.sampled_tokens == 192_000
    assert first.generating_hours == pytest.approx(288_000 / 500 / 3600)
    assert first.training_hours == pytest.approx(192_000 / 1200 / 3600)
    assert first.hours == first.generating_hours  # the slower of two that go on side by side
    assert plan.hours == pytest.approx((288_000 + 192_000) / 500 / 3600)
    assert plan.checkpoint_bytes == 14 * P
    assert plan.text_bytes == 4 * 480_000
    assert plan.disk_bytes == 3 * 14 * P + 2 * 2 * P + 4 * 480_000
    assert plan.memory == estimate_memory(MODEL_SHAPES["7B"], 3, 32_768)


def test_who_takes_turns_adds_up_and_verl_keeps_fewer_checkpoints() -> None:
    waiting = {"group_size": 16, "n_async": 64, "n_batch": 64, "max_staleness": 0}
    plan = plan_training(recipe(engine="verl", collector=waiting, generator={"kind": "vllm"}), Path(), "recipe t")
    assert (plan.trainers, plan.generators, plan.gpus, plan.taking_turns) == (8, 8, 8, True)
    assert plan.stages[0].hours == plan.stages[0].generating_hours + plan.stages[0].training_hours
    assert plan.disk_bytes == 2 * 14 * P + 2 * 2 * P  # it makes room before it writes, and texts are not kept
    apart = plan_training(recipe(), Path(), "recipe t")
    placed = place_embedded(recipe(), tuple("01234567"), shape=MODEL_SHAPES["7B"])
    assert (apart.trainers, apart.generators) == (placed.processes, len(placed.generators)) == (3, 5)
    assert placed.why.endswith(f"{apart.hours:.3g} hours by [costs]")
    on_cpu = plan_training(recipe(generator={"kind": "torch"}, compute={"device": "cpu"}), Path(), "recipe t")
    assert (on_cpu.gpus, on_cpu.memory) == (0, None)


def test_adapters_alone_have_gradients_moments_and_checkpoints() -> None:
    lora, shape = {"rank": 8}, MODEL_SHAPES["7B"]
    adapters = 28 * 8 * (2 * (3584 + 3584) + 2 * (3584 + 512) + 3 * (3584 + 18_944))
    assert shape.adapter_parameters(8) == adapters
    plan = plan_training(recipe(lora=lora), Path(), "recipe t")
    assert plan.memory is not None
    assert plan.memory.states == (4 * P + 16 * adapters) / 2
    assert plan.checkpoint_bytes == 12 * adapters + 2 * P
    less = place_embedded(recipe(lora=lora), tuple("01234567"), shape=shape)
    assert less.processes == 2  # as fast as three, and two have memory enough now
    every = recipe(lora={"rank": 8})
    assert plan_training(every, Path(), "recipe t").memory == estimate_memory(shape, 2, 32_768, lora_rank=8)


def test_stored_attempts_are_not_sampled_and_evaluations_are() -> None:
    held_out = {"data": {"kind": "embedded", "problems": 10}, "every": 2, "attempts": 3}
    plan = plan_training(
        recipe({"stored_steps": 2, "tokens_per_rollout": [1000.0]}, stored={}, curriculum=None, evaluation=held_out),
        Path(),
        "recipe t",
    )
    (stage,) = plan.stages
    assert (stage.steps, stage.trained, stage.sampled) == (5, 320, 288)
    assert plan.evaluated_tokens == 4 * 10 * 3 * 1000  # at the beginning, after 2 and 4 steps and at the end
    only = recipe({"stored_steps": 2}, stored={"only": True}, curriculum=None)
    assert plan_training(only, Path(), "recipe t").stages[0].steps == 2
    held_out["data"] = {"kind": "curated", "folders": ("s",)}
    assert plan_training(recipe(evaluation=held_out), Path(), "recipe t").evaluated_tokens is None


def test_without_costs_it_says_what_to_state() -> None:
    silent = recipe().model_copy(update={"costs": None})
    with pytest.raises(
        ConfigError, match=r"recipe t: it states no costs; add a table \[costs\] with tokens_per_rollout"
    ):
        plan_training(silent, Path(), "recipe t")


@pytest.mark.parametrize(
    ("costs", "changes", "said"),
    [
        ({"shape": None}, {}, "state costs.shape, one of 1.5B, 7B, 24B"),
        ({"tokens_per_rollout": [1.0, 2.0]}, {"curriculum": {"stages": [*STAGES["stages"][:1]] * 3}}, "has 2 values"),
        ({}, {"curriculum": {"stages": [{"until": "reward"}, {}]}}, r"curriculum\.stages\.0 lasts.*state its `steps`"),
        ({}, {"stored": {}, "curriculum": None}, "state costs.stored_steps"),
    ],
)
def test_what_is_not_stated_is_asked_for(costs: dict[str, Any], changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        plan_training(recipe(costs, **changes), Path(), "recipe t")


@pytest.mark.parametrize("costs", [{"sampled_per_trained": [0.5]}, {"trained_tokens_per_s": [0]}])
def test_impossible_costs_are_refused(costs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"sampled_per_trained|trained_tokens_per_s"):
        recipe(costs)


def test_each_stage_has_its_own_collector() -> None:
    sizes = [(one.n_batch, one.n_async) for one in stage_collectors(recipe())]
    assert sizes == [(64, 64), (32, 32)]


def test_a_models_sizes_are_read_from_its_configuration() -> None:
    config = {
        "vocab_size": 152_064,
        "hidden_size": 3584,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "intermediate_size": 18_944,
        "tie_word_embeddings": False,
    }
    assert ModelShape.of(config) == MODEL_SHAPES["7B"]
    assert ModelShape.of({"text_config": config}) == MODEL_SHAPES["7B"]
