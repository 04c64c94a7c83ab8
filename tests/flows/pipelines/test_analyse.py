"""An analysis of a small training run, from its trajectory to its plots, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from curation.records import ConfigError, StoreError
from flows.pipelines.ablate import analyse
from flows.run.training import train
from tests.places import ROOT

CHANGES = (
    "steps=3", "collector.n_batch=16", "collector.n_async=16", "collector.max_staleness=0", "data.problems=40",
    "evaluation={}", "checks=false", "attempt_store='none'", "rewards.max_length=48",
    "optim.warmup_steps=0",
)  # fmt: skip


@pytest.mark.slow
def test_a_run_is_analysed_and_what_is_measured_is_not_asked_again(tmp_path: Path) -> None:
    recipe, run = ROOT / "flows" / "recipes" / "train_embedded.toml", tmp_path / "run"
    train(recipe, run, [*CHANGES, "checkpoints.trajectory=1"])
    assert sorted(path.name for path in (run / "trajectory").iterdir()) == ["v00000001", "v00000002", "v00000003"]
    last, trained = (load_file(run / path / "model.safetensors") for path in ("trajectory/v00000003", "model"))
    assert {name: value.dtype for name, value in last.items()} == {name: value.dtype for name, value in trained.items()}
    assert all(torch.equal(value, trained[name]) for name, value in last.items())  # no step is lost to rounding
    analysis = analyse(run, size=2, problems=3, attempts=1)
    assert len(analysis.points) == 4
    assert len(analysis.directions.states) == 5
    assert all(0 <= point.reward <= 1 and point.tokens > 0 for point in analysis.points)
    assert analysis.plots.exists()
    log = run / "analysis" / "points.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines()
    changed = [json.dumps({**json.loads(line), "reward": 0.25}) for line in lines[:-1]]  # a kill before the last point
    log.write_text("".join(line + "\n" for line in changed), encoding="utf-8")
    again = analyse(run, size=2, problems=3, attempts=1)
    assert [point.reward for point in again.points[:-1]] == [0.25] * 3  # kept, not asked again
    assert again.points[-1] == analysis.points[-1]
    with pytest.raises(StoreError, match="begun with other figures"):
        analyse(run, size=5, problems=3, attempts=1)


def test_a_run_without_its_way_is_refused(tmp_path: Path) -> None:
    recipe = ROOT / "flows" / "recipes" / "train_embedded.toml"
    from flows.run.training import load_train_recipe

    dumped = load_train_recipe(recipe).model_dump(mode="json")
    (tmp_path / "run.json").write_text(
        json.dumps({"kind": "training", "recipe": dumped, "recipe_folder": str(recipe.parent)}), encoding="utf-8"
    )
    with pytest.raises(ConfigError, match=r"checkpoints\.trajectory = 10"):
        analyse(tmp_path)
