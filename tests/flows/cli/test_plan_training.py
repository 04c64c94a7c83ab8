"""`goldilocks plan --stated` of training recipes: every shipped one, and its head says what the command says."""

from __future__ import annotations

import json
import re

import pytest

from flows.cli.plan import training_plan
from flows.launch.training import is_training_recipe
from flows.run.training import load_train_recipe
from tests.flows import miniature
from tests.flows.conftest import goldilocks, refusal
from training.engines.placement import model_shape, stated_gpus, trainer_memory

TRAINING = sorted(path.stem for path in miniature.RECIPES.glob("*.toml") if is_training_recipe(path))
LARGE = ("grader_7b", "rl_24b", "rl_7b")


def head(name: str) -> str:
    text = (miniature.RECIPES / f"{name}.toml").read_text().partition("\nname = ")[0]
    return " ".join(line.strip("# ") for line in text.splitlines())


@pytest.mark.parametrize("name", TRAINING)
def test_a_recipe_s_head_says_what_the_plan_says(name: str) -> None:
    path = miniature.RECIPES / f"{name}.toml"
    (hours, tokens), said = training_plan(path).lines(), head(name)
    assert f"goldilocks plan flows/recipes/{name}.toml --stated" in said
    figures = [re.match(r"([\d.,]+ [kMG]) tokens", tokens)]
    if name in LARGE:
        figures.append(re.match(r"([\d,]+ GPU hours: [\d,]+ hours on \d+ GPUs)", hours))
    else:
        figures.append(re.match(r"no GPU: (.+) on one machine", hours))
    for figure in figures:
        assert figure is not None
        assert figure[1] in said


@pytest.mark.parametrize("name", LARGE)
def test_the_large_ones_fit_their_gpus_and_starve_no_generator(name: str) -> None:
    path = miniature.RECIPES / f"{name}.toml"
    recipe = load_train_recipe(path)
    assert recipe.costs is not None
    memory = trainer_memory(recipe, model_shape(recipe, recipe.costs, path.parent), stated_gpus(recipe, path.parent)[0])
    assert memory < 80e9
    assert f"{memory / 2**30:,.0f} GiB" in head(name)
    said = goldilocks("plan", path, "--stated")
    assert said.status == 0, said.err
    assert "warning" not in said.out


def test_the_command_prints_the_stages_and_as_json_the_same() -> None:
    path = miniature.RECIPES / "rl_7b.toml"
    said = goldilocks("plan", path, "--stated")
    assert "5,006 GPU hours: 626 hours on 8 GPUs, 4 train, 4 generate" in said.out
    assert re.search(r"3 +80 +2,048 +204,800 +163,840", said.out)
    table = json.loads(goldilocks("plan", path, "--stated", "--json").out)
    assert [stage["n_batch"] for stage in table["stages"]] == [8192, 4096, 2048]
    assert round((table["trainers"] + table["generators"]) * table["hours"]) == 5006


def test_a_pilot_of_training_and_a_recipe_without_costs_are_sentences() -> None:
    path = miniature.RECIPES / "rl_7b.toml"
    assert "it trains, so there is no pilot to run; plan it with --stated" in refusal("plan", path)
    assert "has no fixed length" in refusal(
        "plan", path, "--stated", "--set", 'curriculum.stages=[{until="reward"},{}]'
    )
