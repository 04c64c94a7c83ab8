"""Training recipes as TOML: what ships, what is changed, what is refused; and the folder of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.records import ConfigError, StoreError
from flows.pipelines.train import main
from flows.run.training import load_train_recipe, read_run, train
from tests.places import ROOT
from training.recipe import EmbeddedData, TrainRecipe

RECIPE = ROOT / "flows" / "recipes" / "train_embedded.toml"


def test_the_shipped_recipe_is_one() -> None:
    recipe = load_train_recipe(RECIPE)
    assert recipe.name == "train-embedded"
    assert recipe.warnings() == ()
    assert isinstance(recipe.evaluation.data, EmbeddedData)


def test_settings_can_be_changed() -> None:
    changed = load_train_recipe(RECIPE, ["steps=7", "optim.learning_rate=1e-6", "curriculum.draw=thompson"])
    assert changed.steps == 7
    assert changed.optim.learning_rate == 1e-6
    assert changed.curriculum is not None
    assert changed.curriculum.draw == "thompson"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (
            "data.problemz=4",
            "unknown key `data.problemz`; did you mean `problems`? Allowed here: kind, problems, seed.",
        ),
        (
            "evaluation.data.sed=4",
            "unknown key `evaluation.data.sed`; did you mean `seed`? Allowed here: kind, problems, seed.",
        ),
        (
            "models.student.gpu_memory=1",
            "unknown key `models.student.gpu_memory`; allowed here: decoding, examples, kind, model, prompt, thinking.",
        ),
        (
            "colector.group=4",
            "unknown key `colector`; did you mean `collector`? Allowed here: "
            f"{', '.join(sorted(TrainRecipe.model_fields))}.",
        ),
        ("data.problems=many", "`data.problems` = 'many': input should be a valid integer."),
        ('data={kind="curated", folders="set"}', "`data.folders` = 'set': input should be a list, as in ['set']."),
        ('data={kind="curated"}', "`data.folders` is missing."),
        ("data={problems=4}", "`data.kind` is missing; it should be one of 'embedded', 'curated', 'latent'."),
        ("data=embedded", "`data` = 'embedded': input should be a table."),
        (
            "models.student.kind=telepathy",
            "`models.student.kind` = 'telepathy': input should be one of 'recorded', 'vllm', 'endpoint', 'torch'.",
        ),
        (
            'models.student={ kind = "vllm", model = "m", dtype = "bfloat" }',
            "`models.student.dtype` = 'bfloat': input should be 'auto', 'bfloat16', 'float16' or 'float32'; did you "
            "mean 'bfloat16'?",
        ),
        (
            "models.student.decoding.seed=1",
            "models.student.decoding.seed is not read in training: rewards.max_length, seed and collector take its "
            "place; leave it out.",
        ),
        (
            "model=studnt",
            "model = 'studnt': there is no table [models.studnt]; did you mean `student`? defined: student.",
        ),
        ("steps=0", "`steps` = 0: input should be greater than or equal to 1."),
        ("objective.kl_coef=-0.1", "`objective.kl_coef` = -0.1: input should be greater than or equal to 0."),
        (
            "curriculum.stages=[{ steps = 'long' }]",
            "`curriculum.stages.0.steps` = 'long': input should be a valid integer.",
        ),
        (
            "collector.group_size=7",
            "collector: n_batch = 128 holds no whole number of groups of 7; change one of them.",
        ),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_sentence(override: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_train_recipe(RECIPE, [override])
    assert str(caught.value) == f"recipe {RECIPE}: {said}"
    table = {"kind": "training", "recipe": load_train_recipe(RECIPE).model_dump(mode="json"), "recipe_folder": "."}
    (tmp_path / "run.json").write_text(json.dumps(table))
    with pytest.raises(ConfigError) as caught:
        read_run(tmp_path, [override])
    assert str(caught.value) == f"recipe {tmp_path / 'run.json'}: {said}"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("steps", "write key=value, as in seed=1."),
        ("steps.more=1", "`more` is inside a value that is no table."),
        ("packing.micro_batch_tokens.more.still=1", "`more` is inside a value that is no table."),
    ],
)
def test_a_set_that_leads_nowhere_is_refused(override: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_train_recipe(RECIPE, [override])
    assert str(caught.value) == f"--set {override}: {said}"


def test_missing_and_damaged_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
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
    assert main([str(RECIPE), "--set", "models.student.model=nowhere", "--out", str(tmp_path / "run")]) == 1
    assert "no model here" in capsys.readouterr().err
