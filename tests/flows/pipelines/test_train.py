"""Training recipes as TOML: what ships, what is changed, what is refused; and the folder of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.records import ConfigError, GoldilocksError, StoreError
from flows.pipelines.train import main
from flows.pipelines.train_stage import train_stage
from flows.run.training import load_train_recipe, read_run, train
from training.recipe import EmbeddedData

RECIPE = Path(__file__).parents[3] / "flows" / "recipes" / "train_embedded.toml"


def test_the_shipped_recipe_is_one() -> None:
    recipe = load_train_recipe(RECIPE)
    assert recipe.name == "train-embedded"
    assert recipe.collector.warnings() == ()
    assert isinstance(recipe.evaluation.data, EmbeddedData)


def test_settings_can_be_changed() -> None:
    changed = load_train_recipe(RECIPE, ["steps=7", "optim.learning_rate=1e-6", "curriculum.lengths=[64, 80]"])
    assert changed.steps == 7
    assert changed.optim.learning_rate == 1e-6
    assert changed.curriculum is not None
    assert changed.curriculum.lengths == (64, 80)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("steps=0", "steps"),
        ("colector.group=4", "colector"),
        ("collector.group=7", "groups of 7"),
        ("objective.kl=-0.1", "objective.kl"),
        ("steps", "key=value"),
        ("steps.more=1", "no table"),
        ("generator.kind=telepathy", "generator"),
    ],
)
def test_what_cannot_be_meant_is_said(override: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_train_recipe(RECIPE, [override])


def test_missing_and_damaged_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_train_recipe(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("name = ")
    with pytest.raises(ConfigError, match="not TOML"):
        load_train_recipe(tmp_path / "bad.toml")
    with pytest.raises(StoreError, match="no run to resume"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"recipe": {}, "recipe_folder": "."}))
    with pytest.raises(StoreError, match="no training run"):
        read_run(tmp_path)
    with pytest.raises(ConfigError, match="which"):
        train(None, None, resume=True)
    with pytest.raises(ConfigError, match="give a recipe"):
        train(None)


def test_the_command_of_torchrun_says_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(RECIPE), "--set", "model=nowhere", "--out", str(tmp_path / "run")]) == 1
    assert "no model here" in capsys.readouterr().err


def test_the_flow_is_the_function(tmp_path: Path) -> None:
    assert train_stage.name == "train-stage"
    with pytest.raises(GoldilocksError, match="no model here"):
        train_stage.fn(RECIPE, tmp_path / "run", ["model=nowhere"])
