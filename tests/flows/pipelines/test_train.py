"""Training recipes as TOML: what ships, what is changed, what is refused; and the folder of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.records import ConfigError, StoreError
from flows.run.training import load_train_recipe, main, read_run, train
from tests.places import ROOT
from training.recipe import EmbeddedData

RECIPE = ROOT / "flows" / "recipes" / "train_embedded.toml"


def test_the_shipped_recipe_is_one_and_can_be_changed() -> None:
    recipe = load_train_recipe(RECIPE)
    assert recipe.name == "train-embedded"
    assert recipe.warnings() == ()
    assert isinstance(recipe.evaluation.data, EmbeddedData)
    changed = load_train_recipe(RECIPE, ["optim.learning_rate=1e-6", "curriculum.stages=[{steps=3},{}]"])
    assert changed.optim.learning_rate == 1e-6
    assert changed.curriculum is not None
    assert changed.curriculum.stages[0].steps == 3


REFUSED = {
    "data.problemz=4": "unknown key `data.problemz`; did you mean `problems`? Allowed here: kind, problems, seed.",
    "models.student.decoding.max_tokens=1": "models.student.decoding.max_tokens is not read in training: "
    "rewards.max_length, seed and collector take its place; leave it out.",
    "collector.group_size=7": "collector: n_batch = 128 is no multiple of group_size = 7; change one of them.",
}


@pytest.mark.parametrize("override", REFUSED)
def test_what_cannot_be_meant_is_one_sentence(override: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_train_recipe(RECIPE, [override])
    assert str(caught.value) == f"recipe {RECIPE}: {REFUSED[override]}"
    table = {"kind": "training", "recipe": load_train_recipe(RECIPE).model_dump(mode="json"), "recipe_folder": "."}
    (tmp_path / "run.json").write_text(json.dumps(table))
    with pytest.raises(ConfigError) as caught:
        read_run(tmp_path, [override])
    assert str(caught.value) == f"recipe {tmp_path / 'run.json'}: {REFUSED[override]}"


def test_damaged_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("name = ")
    with pytest.raises(ConfigError, match="not TOML"):
        load_train_recipe(tmp_path / "bad.toml")
    (tmp_path / "run.json").write_text(json.dumps({"recipe": {}, "recipe_folder": "."}))
    with pytest.raises(StoreError, match="no training run"):
        read_run(tmp_path)
    with pytest.raises(ConfigError, match="give its folder"):
        train(None, None, resume=True)
    with pytest.raises(ConfigError, match="give a recipe"):
        train(None)


def test_the_command_of_torchrun_says_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(RECIPE), "--set", "models.student.model=nowhere", "--out", str(tmp_path / "run")]) == 1
    assert "no model here" in capsys.readouterr().err
