"""An ablation on the embedded model, from its file to its page; ready ones; prompts in files."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest

from curation.config.loading import load_settings
from curation.records import ConfigError, StoreError
from flows.pipelines.ablate import ablate
from flows.run.benches import FOLDERS, load_bench
from flows.run.training import load_train_recipe, read_run
from tests.places import ROOT
from training.embedded_model.problems import Split, generate_exercises
from training.evaluation.ablations import Ablation

BENCH = """
name = "few"
attempts = 2
workers = 1
consistency = false
model = "newer"
decoding = { temperature = 0.7, max_tokens = 48 }
[[sources]]
name = "sums"
kind = "jsonl"
path = "sums.jsonl"
[sources.columns]
answer = "answer"
[models.newer]
kind = "torch"
model = "embedded"
prompt = "plain"
"""


def ablation_file(folder: Path) -> Path:
    exercises = islice(generate_exercises(31, Split.HELD_OUT, kinds=("larger",)), 4)
    rows = [{"problem": item.statement, "answer": str(item.answer)} for item in exercises]
    (folder / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "bench.toml").write_text(BENCH, encoding="utf-8")
    recipe = ROOT / "flows" / "recipes" / "train_embedded.toml"
    path = folder / "ablation.toml"
    path.write_text(
        f"""
name = "clip"
recipe = {json.dumps(str(recipe))}
set = ["steps=1", "collector.n_batch=16", "collector.n_async=16", "collector.max_staleness=0", "data.problems=40",
       "evaluation={{}}", "checks=false", "attempt_store='none'"]
seeds = [1]
benches = ["bench.toml"]
[[axes]]
name = "clip"
values = [{{ name = "high" }}, {{ name = "low", set = ["objective.eps_high=0.2"] }}]
""",
        encoding="utf-8",
    )
    return path


@pytest.mark.slow
def test_an_ablation_trains_evaluates_and_goes_on(tmp_path: Path) -> None:
    path, out = ablation_file(tmp_path), tmp_path / "out"
    assert ablate(path, out) == out
    results = json.loads((out / "ablation.json").read_text())["results"]
    assert [(result["arm"], result["seeds"]) for result in results] == [("high", 1), ("low", 1)]
    assert results[0]["sampled_tokens"] > 0
    assert read_run(out / "runs" / "low-seed-1")[0].objective.model_dump()["eps_high"] == 0.2
    files = {name: (out / name).read_bytes() for name in ("ablation.json", "report.md")}
    models = {file: file.stat().st_mtime_ns for file in (out / "runs").rglob("*.safetensors")}
    ablate(path, out)
    assert {name: (out / name).read_bytes() for name in files} == files
    assert {file: file.stat().st_mtime_ns for file in (out / "runs").rglob("*.safetensors")} == models
    with pytest.raises(StoreError, match="holds another ablation"):
        ablate(path, out, ["benches=['demo']"])


def test_an_arm_that_cannot_be_meant_is_refused_before_training(tmp_path: Path) -> None:
    path = ablation_file(tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace("objective.eps_high=0.2", "objective.eps_hihg=0.2"))
    with pytest.raises(ConfigError, match="eps_high"):
        ablate(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_ready_ablations_can_be_meant() -> None:
    for path in FOLDERS["ablation"].glob("*.toml"):
        ablation = load_settings(Ablation, path)
        assert ablation.name == path.stem.replace("_", "-")
        for arm in ablation.arms():
            load_train_recipe(path.parent / arm.recipe(ablation.recipe), arm.changes(ablation.set, 1))
        assert all(load_bench(name, folder=path.parent) for name in ablation.benches)


def test_a_training_run_keeps_the_text_of_its_prompt(tmp_path: Path) -> None:
    """A run that is resumed is asked as it was begun, whatever the file holds by then."""
    recipe = ROOT / "flows" / "recipes" / "train_embedded.toml"
    change = "models.student.prompt={ file = '../ablations/terse_prompt.txt' }"
    dumped = load_train_recipe(recipe, [change]).model_dump(mode="json")
    assert "without digressions" in dumped["models"]["student"]["prompt"]["text"]
    (tmp_path / "run.json").write_text(
        json.dumps({"kind": "training", "recipe": dumped, "recipe_folder": str(tmp_path)}), encoding="utf-8"
    )
    assert read_run(tmp_path)[0].trained.prompt == load_train_recipe(recipe, [change]).trained.prompt
