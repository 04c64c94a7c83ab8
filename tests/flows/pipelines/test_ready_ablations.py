"""Ready recipes of stored attempts train at toy size on the embedded model."""

from __future__ import annotations

import json
import math
from itertools import islice
from pathlib import Path

import pytest

from flows.cli.commands import run_recipe
from flows.run.training import train
from tests.flows.conftest import write_jsonl
from tests.places import ROOT
from training.embedded_model.problems import Split, generate_exercises

pytestmark = pytest.mark.slow

RECIPES = ROOT / "flows" / "recipes"
RECIPE = """
name = "toy"
workers = 1
[[sources]]
name = "sums"
kind = "jsonl"
path = "sums.jsonl"
license = "Apache-2.0"
columns = { answer = "answer", solution = "solution" }
[near_dedup]
enabled = false
[stage1]
model = "student"
band = { attempts = 4, min_correct = 0, max_pass_rate = 1, wrong_label_share = 1 }
[stage1.sampling]
early_stopping = false
[models.student]
kind = "torch"
model = "embedded"
prompt = "plain"
decoding = { temperature = 1.0, max_tokens = 112 }
"""


def finished_run(home: Path) -> Path:
    """A finished run of sums with the embedded model's attempts; proofs that it dropped."""
    sums = [
        {"problem": one.statement, "answer": str(one.answer), "solution": f"{one.answer}"}
        for one in islice(generate_exercises(5, Split.TRAIN), 40)
    ]
    proofs = [
        {"problem": f"Prove that {n} + {n} = {2 * n}.", "answer": None, "solution": "9 + 9"} for n in range(3, 15)
    ]
    write_jsonl(home / "sums.jsonl", [*sums, *proofs])
    (home / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    run_recipe(home / "recipe.toml", [], home / "run")
    return home / "run"


@pytest.fixture(scope="module")
def toy_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; do not write into it."""
    return finished_run(tmp_path_factory.mktemp("toy"))


def test_a_cold_start_and_reinforcement_from_it_come_to_their_end(toy_run: Path, tmp_path: Path) -> None:
    folders = f"data.folders=[{json.dumps(str(toy_run / 'curated'))}]"
    held_out = ["evaluation.problems=4", "evaluation.attempts=1", "evaluation.every=1", "checks=false"]
    cold = [folders, f"stored.runs=[{json.dumps(str(toy_run))}]", "stored.after_step=0", "stored.epochs=1.0"]
    train(
        RECIPES / "train_cold_start.toml",
        tmp_path / "cold",
        [*cold, *held_out, "collector.n_batch=16", "collector.n_async=16"],
    )
    summary = json.loads((tmp_path / "cold" / "summary.json").read_text())
    assert 0 < summary["steps"] < 1000
    assert (tmp_path / "cold" / "best" / "model.safetensors").is_file()
    model = f"models.student.model={json.dumps(str(tmp_path / 'cold' / 'best'))}"
    sizes = ["steps=1", "collector.group_size=4", "collector.n_batch=8", "collector.n_async=8"]
    train(RECIPES / "train_after_cold_start.toml", tmp_path / "after", [folders, model, *held_out, *sizes])
    assert json.loads((tmp_path / "after" / "summary.json").read_text())["steps"] == 1


def test_latent_training_comes_to_its_end(toy_run: Path, tmp_path: Path) -> None:
    sizes = ["steps=1", "collector.group_size=4", "collector.n_batch=8", "collector.n_async=8", "checks=false"]
    folders = f"data.folders=[{json.dumps(str(toy_run / 'curated'))}]"
    train(RECIPES / "train_latent.toml", tmp_path / "latent", [folders, *sizes, "collector.max_staleness=0"])
    (row,) = [json.loads(line) for line in (tmp_path / "latent" / "metrics.jsonl").read_text().splitlines()][-1:]
    assert math.isfinite(row["policy/loss"])
    assert json.loads((tmp_path / "latent" / "summary.json").read_text())["steps"] == 1
