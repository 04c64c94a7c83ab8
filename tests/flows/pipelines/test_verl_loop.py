"""A grader by verl, training on the set, and the refresh by its model; verl's own trainer runs on the CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from curation.policies.checkpoints import folder_revision
from flows.cli.commands import run_recipe
from flows.publish.versions import stored_versions
from flows.serve.unfinished import REFRESHED, checkpoint, training_folder
from tests.benchmarks.bench_crash import write_recipe
from tests.places import in_gate
from tests.training.engines.verl.cpu_environment import ENVIRONMENT, OVERRIDES, make_environment
from tests.waiting import wait_until
from training.engines.verl.environment import VARIABLE, missing
from training.engines.verl.run import last_step, processes_of
from training.evaluation.metrics import read_metrics

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing()), in_gate("flows/verl-loop")]

STEPS = 3

TRAINING = Path(__file__).with_name("verl_training.toml").read_text(encoding="utf-8")
GRADER = Path(__file__).with_name("verl_grader.toml").read_text(encoding="utf-8")


def test_a_grader_by_verl_is_killed_and_resumed_and_its_set_trains_and_is_refreshed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, under_prefect: str
) -> None:
    from flows.refresh import refresh
    from flows.train import train_stage

    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    recipe, run = write_recipe(tmp_path / "in", grader=False), tmp_path / "run"
    recipe.write_text(f"{recipe.read_text()}\n{GRADER}")
    monkeypatch.setenv(VARIABLE, str(make_environment(tmp_path / "verl")))
    training = f"{TRAINING}overrides = {json.dumps(OVERRIDES)}\n"
    recipe.with_name("train.toml").write_text(training)

    grader = run / "grader" / "training"
    command = [sys.executable, "-m", "flows.cli", "--quiet", "run", str(recipe), "--out", str(run)]
    with (tmp_path / "killed.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as started:
        try:
            wait_until(lambda: last_step(grader) >= 1, started)
        finally:
            started.kill()
    assert processes_of(grader)  # they are still ending, and may write a checkpoint more
    run_recipe(recipe, [], run)

    steps = [row["step"] for row in read_metrics(grader)]
    assert set(range(1, STEPS + 1)) >= set(steps) >= {STEPS}
    assert len(steps) >= STEPS - 1  # verl tells of a step after saving: that of the kill may be lost
    kept = [path.name for path in (grader / "verl" / "checkpoints").glob("global_step_*")]
    assert kept == [f"global_step_{STEPS}"]  # checkpoints.keep = 1, over the kill too
    attempts = pl.read_ndjson(grader / "attempts.jsonl")
    groups = attempts.group_by("group").len()
    assert groups["len"].to_list() == [4] * groups.height
    assert sorted(groups["group"]) == list(range(groups.height))
    revision = folder_revision(grader / "model")
    keys = [json.loads(path.read_text()) for path in (run / "attempts").glob("*/key.json")]
    assert any(revision in json.dumps(key) for key in keys)  # stage 2 sampled what verl trained
    (first,) = stored_versions(run)

    train_stage(run, first.number, recipe.with_name("train.toml"))  # what is started on a set's new version,
    trained = checkpoint(run, first.number)  # and then on its model
    refresh(run, Path(trained["policy"]), Path(trained["attempts"]))
    stage = training_folder(run, first.number)
    assert json.loads((stage / "summary.json").read_text())["engine"] == "verl"
    assert (stage / REFRESHED).exists()
    newest = stored_versions(run)[-1]
    assert (newest.origin, newest.policy.partition("@")[2]) == ("refresh", folder_revision(stage / "model"))
