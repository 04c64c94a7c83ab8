"""The shipped training recipes of a real size: the paper's stages, and what each engine takes of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from curation.config.loading import load_settings
from tests.places import ROOT
from training.engines.placement import VerlPlacement, place_embedded
from training.engines.verl.configuration import VerlFiles, compile_recipe
from training.engines.verl.differences import refuse_what_differs
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


def stages_of_24b() -> list[list[str]]:
    """The `--set` of each stage, as the recipe's head gives them."""
    head = (RECIPES / "rl_24b.toml").read_text().partition("\nname = ")[0]
    text = head[head.index("--out runs/rl-24b-1") : head.index("# The paper prints")]
    return [re.findall(r"--set (\S+)", part) for part in text.split("--out")[1:]]


def test_the_stages_of_24b_are_the_papers_and_verl_takes_each() -> None:
    changes = stages_of_24b()
    assert len(changes) == 3
    made = [recipe("rl_24b", *of_stage) for of_stage in changes]
    assert [free_length(one) for one in made] == LENGTHS
    assert [one.collector.n_batch for one in made] == BATCHES
    for one in made:
        refuse_what_differs(one)
        files = VerlFiles(Path("/m"), Path("/out"), Path("/out/train.parquet"))
        compiled = compile_recipe(one, files, VerlPlacement(2, 8, 2, 8), experts=False, gpus_per_node=8)
        assert compiled.values["data"]["train_batch_size"] == one.collector.n_batch // one.collector.group_size
        assert one.packing.micro_batch_tokens >= one.rewards.max_length + one.verl.max_prompt_tokens


@pytest.mark.parametrize("name", ["grader_7b", "rl_7b"])
def test_eight_gpus_are_parted_between_trainer_and_generator(name: str) -> None:
    placed = place_embedded(recipe(name), [str(number) for number in range(8)])
    assert (placed.processes, placed.generator_gpu) == (7, "7")


@pytest.mark.parametrize("name", ["grader_7b", "rl_7b", "rl_24b"])
def test_a_head_says_what_it_needs(name: str) -> None:
    head = (RECIPES / f"{name}.toml").read_text().partition("\nname = ")[0]
    for said in ("What it needs", "GPUs of 80 GB", "hours", "disk", "What it is expected to yield"):
        assert said in head
