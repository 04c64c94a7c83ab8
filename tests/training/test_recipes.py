"""What a training run computes, by hand, and the shipped recipes of a real size: the paper's stages, and verl."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from curation.config.loading import load_settings
from curation.records import ConfigError
from tests.places import ROOT
from tests.training.students import student
from training.config import MAX_PROMPT_TOKENS
from training.engines.placement import VerlPlacement, stated_gpus
from training.engines.verl.configuration import compile_recipe, refuse_what_differs
from training.engines.verl.stages import all_stages
from training.optimisation.memory import MODEL_SHAPES, ModelShape
from training.recipe import TrainRecipe
from training.workload import Workload, workload

COSTS = {
    "gpus": 8,
    "shape": "7B",
    "tokens_per_attempt": [1000.0, 2000.0],
    "sampled_per_trained": [1.5],
    "tokens_per_s": [100.0],
    "trained_tokens_per_s": [400.0],
}
STAGES = {"stages": [{"steps": 3, "lengths": 500, "n_batch": 64, "n_async": 64}, {"n_batch": 32, "n_async": 32}]}


def recipe(costs: dict[str, Any] | None = None, **changes: Any) -> TrainRecipe:
    table: dict[str, Any] = {
        "name": "t",
        "steps": 5,
        **student("nowhere", kind="vllm"),
        "data": {"kind": "embedded"},
        "collector": {"group_size": 16, "n_async": 64, "n_batch": 64},
        "rewards": {"max_length": 1000, "length_cache": 200},
        "curriculum": STAGES,
        "compute": {"device": "cuda", "dtype": "bfloat16", "activation_checkpointing": True},
        "costs": {**COSTS, **(costs or {})},
        **changes,
    }
    return TrainRecipe.model_validate(table)


def work_of(one: TrainRecipe) -> Workload:
    return workload(one, one.costs, "recipe t")


def test_stages_and_hours_by_hand() -> None:
    assert stated_gpus(recipe(), Path()) == (3, 5, False)
    first, second = work_of(recipe()).stages
    assert (first.steps, first.n_batch, first.trained, first.sampled) == (3, 64, 192, 288)
    assert (second.steps, second.n_batch, second.trained, second.sampled) == (2, 32, 64, 96)
    assert first.sampled_tokens == 288_000
    assert second.sampled_tokens == 192_000
    assert first.generating / 5 == pytest.approx(288_000 / 500 / 3600)
    assert first.training / 3 == pytest.approx(192_000 / 1200 / 3600)
    assert first.hours(3, 5, waits=False) == first.generating / 5  # the slower of two at the same time
    assert first.hours(3, 5, waits=True) == first.generating / 5 + first.training / 3
    assert work_of(recipe()).hours(3, 5, waits=False) == pytest.approx((288_000 + 192_000) / 500 / 3600)


def test_stored_attempts_are_not_sampled_and_evaluations_are() -> None:
    held_out: dict[str, Any] = {"data": {"kind": "embedded", "problems": 10}, "every": 2, "attempts": 3}
    costs = {"stored_steps": 2, "tokens_per_attempt": [1000.0]}
    work = work_of(recipe(costs, stored={}, curriculum=None, evaluation=held_out))
    (stage,) = work.stages
    assert (stage.steps, stage.trained, stage.sampled) == (5, 320, 288)
    assert work.evaluated_tokens == 4 * 10 * 3 * 1000  # at the beginning, after 2 and 4 steps and at the end
    assert work_of(recipe({"stored_steps": 2}, stored={"only": True}, curriculum=None)).stages[0].steps == 2
    held_out["data"] = {"kind": "curated", "folders": ("s",)}
    assert work_of(recipe(evaluation=held_out)).evaluated_tokens is None


@pytest.mark.parametrize(
    ("costs", "changes", "message"),
    [
        ({"tokens_per_attempt": [1.0, 2.0]}, {"curriculum": {"stages": [*STAGES["stages"][:1]] * 3}}, "has 2 values"),
        ({}, {"curriculum": {"stages": [{"until": "reward"}, {}]}}, r"curriculum\.stages\.0 has.*set its `steps`"),
        ({}, {"stored": {}, "curriculum": None}, "state costs.stored_steps"),
    ],
)
def test_a_figure_that_is_missing_is_named(costs: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        work_of(recipe(costs, **changes))


def test_a_models_sizes_are_read_from_its_configuration() -> None:
    config = {"vocab_size": 152_064, "hidden_size": 3584, "intermediate_size": 18_944, "num_hidden_layers": 28}
    config |= {"num_attention_heads": 28, "num_key_value_heads": 4, "tie_word_embeddings": False}
    assert ModelShape.of(config) == ModelShape.of({"text_config": config}) == MODEL_SHAPES["7B"]


RECIPES = ROOT / "flows" / "recipes"
LENGTHS, BATCHES = [16_384, 24_576, 32_768], [8192, 4096, 2048]
"""Of the paper, section 5.2: l_max - l_cache, and rollouts between two updates."""


def shipped(name: str, *overrides: str) -> TrainRecipe:
    return load_settings(TrainRecipe, RECIPES / f"{name}.toml", overrides)


def free_length(one: TrainRecipe) -> int:
    return one.rewards.max_length - one.rewards.effective_length_cache


def test_the_stages_of_7b_are_the_papers() -> None:
    made = shipped("rl_7b")
    stages = made.curriculum.stages
    assert [stage.lengths for stage in stages] == LENGTHS
    assert [stage.n_batch for stage in stages] == BATCHES
    assert all(stage.n_async / stage.n_batch <= 2 for stage in stages)
    assert free_length(made) == LENGTHS[-1]
    assert made.packing.micro_batch_tokens >= made.rewards.max_length + 4096


def test_the_stages_of_24b_are_the_papers_and_verl_takes_each() -> None:
    whole = shipped("rl_24b")
    refuse_what_differs(whole)
    stages = list(all_stages(whole))
    assert [free_length(stage.recipe) for stage in stages] == LENGTHS
    assert [stage.recipe.collector.n_batch for stage in stages] == BATCHES
    assert [stage.ends_at for stage in stages] == [60, 120, 200]
    for stage in stages:
        one = stage.recipe
        room = one.packing.micro_batch_tokens * one.verl.sequence_parallel
        assert room >= one.rewards.max_length + MAX_PROMPT_TOKENS
        placement = VerlPlacement(2, 8, 2, 8)
        compiled = compile_recipe(one, Path("/m"), Path("/out"), placement, ends_at=stage.ends_at)
        assert compiled["values"]["trainer.total_training_steps"] == stage.ends_at
        assert compiled["values"]["data.train_batch_size"] == one.collector.n_batch // one.collector.group_size


TRAINING = sorted(path.stem for path in RECIPES.glob("*.toml") if "collector" in tomllib.loads(path.read_text()))


@pytest.mark.parametrize("name", TRAINING)
def test_no_shipped_recipe_is_warned_of(name: str) -> None:
    assert shipped(name).warnings() == ()
