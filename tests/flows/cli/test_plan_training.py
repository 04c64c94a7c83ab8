"""`goldilocks plan --stated` of training recipes: every shipped one, and its head says what the command says."""

from __future__ import annotations

import json
import re

import pytest

from flows.cli.plan_training import stated_training_plan, training_needs
from flows.launch.training import is_training_recipe
from tests.flows import miniature
from tests.flows.conftest import goldilocks, refusal

TRAINING = sorted(path.stem for path in miniature.RECIPES.glob("*.toml") if is_training_recipe(path))
LARGE = ("grader_7b", "rl_24b", "rl_7b")


def head(name: str) -> str:
    text = (miniature.RECIPES / f"{name}.toml").read_text().partition("\nname = ")[0]
    return " ".join(line.strip("# ") for line in text.splitlines())


@pytest.mark.parametrize("name", TRAINING)
def test_a_recipe_s_head_says_what_the_plan_says(name: str) -> None:
    path = miniature.RECIPES / f"{name}.toml"
    needs, said = training_needs(stated_training_plan(path)), head(name)
    assert f"goldilocks plan flows/recipes/{name}.toml --stated" in said
    figures = [re.match(r"([\d.,]+ [GM]B) of disk", needs[-1]), re.match(r"([\d.,]+ [kMG]) tokens", needs[1])]
    if name in LARGE:
        figures.append(re.match(r"([\d,]+ GPU hours: [\d,]+ hours on \d+ GPUs)", needs[0]))
        figures.append(re.match(r"(\d+ GiB) on each GPU that trains", needs[2]))
    else:
        figures.append(re.match(r"no GPU: (.+) on one machine", needs[0]))
    for figure in figures:
        assert figure is not None
        assert figure[1] in said


@pytest.mark.parametrize("name", LARGE)
def test_the_large_ones_fit_their_gpus_and_starve_nobody(name: str) -> None:
    plan = stated_training_plan(miniature.RECIPES / f"{name}.toml")
    assert plan.memory is not None
    assert plan.memory.total < 80e9
    assert plan.generator_weights < 0.8 * 80e9
    said = goldilocks("plan", miniature.RECIPES / f"{name}.toml", "--stated")
    assert said.status == 0, said.err
    assert "warning" not in said.out


def test_the_command_prints_the_stages_and_as_json_the_same() -> None:
    path = miniature.RECIPES / "rl_7b.toml"
    said = goldilocks("plan", path, "--stated")
    assert "5,006 GPU hours: 626 hours on 8 GPUs, 4 train, 4 generate" in said.out
    assert re.search(r"3 +80 +2,048 +40,960", said.out)
    table = json.loads(goldilocks("plan", path, "--stated", "--json").out)
    assert [stage["n_batch"] for stage in table["stages"]] == [8192, 4096, 2048]
    assert round(table["gpus"] * table["hours"]) == 5006


def test_a_pilot_of_training_and_a_recipe_without_costs_are_sentences() -> None:
    path = miniature.RECIPES / "rl_7b.toml"
    assert "it trains, so there is no pilot to run; plan it with --stated" in refusal("plan", path)
    assert "nobody knows how long" in refusal(
        "plan", path, "--stated", "--set", 'curriculum.stages=[{until="reward"},{}]'
    )
