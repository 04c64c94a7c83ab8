"""The shipped training recipes of a real size: the paper's stages, and what each engine takes of them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from curation.config.loading import load_settings
from tests.places import ROOT
from training.config import MAX_PROMPT_TOKENS
from training.engines.placement import VerlPlacement
from training.engines.verl.configuration import compile_recipe, refuse_what_differs
from training.engines.verl.stages import all_stages
from training.recipe import TrainRecipe

RECIPES = ROOT / "flows" / "recipes"
LENGTHS, BATCHES = [16_384, 24_576, 32_768], [8192, 4096, 2048]
"""Of the paper, section 5.2: l_max - l_cache, and rollouts between two updates."""


def recipe(name: str, *overrides: str) -> TrainRecipe:
    return load_settings(TrainRecipe, RECIPES / f"{name}.toml", overrides)


def free_length(one: TrainRecipe) -> int:
    return one.rewards.max_length - one.rewards.effective_length_cache


def test_the_stages_of_7b_are_the_papers() -> None:
    made = recipe("rl_7b")
    assert made.curriculum is not None
    assert [stage.lengths for stage in made.curriculum.stages] == LENGTHS
    assert [stage.n_batch for stage in made.curriculum.stages] == BATCHES
    assert free_length(made) == LENGTHS[-1]
    for stage in made.curriculum.stages:
        assert stage.n_async is not None
        assert stage.n_batch is not None
        assert stage.n_async / stage.n_batch <= 2
    assert made.packing.micro_batch_tokens >= made.rewards.max_length + 4096


def test_the_stages_of_24b_are_the_papers_and_verl_takes_each() -> None:
    whole = recipe("rl_24b")
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
    assert recipe(name).warnings() == ()
