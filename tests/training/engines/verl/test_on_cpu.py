"""verl's own trainer, started for real: its Ray actors, FSDP2 over gloo, its loop, our plugin, a kill and a resumption.

Only what needs a GPU is ours here (`tests.training.engines.verl.on_cpu`): generation is torch's, and weights go through
a file.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from curation.policies.checkpoints import folder_revision
from flows.run.training import train
from tests.training.engines.verl.cpu_environment import ENVIRONMENT, OVERRIDES, make_environment
from tests.waiting import PATIENCE_S, wait_until
from training.embedded_model import WEIGHTS
from training.engines.verl.environment import VARIABLE, missing
from training.engines.verl.run import last_step
from training.evaluation.metrics import read_metrics
from training.optimisation.model import load_model

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing())]

STEPS = 12

RECIPE = """
name = "on-cpu"
engine = "verl"
model = "student"
steps = 12
data = {kind = "embedded", problems = 12, seed = 5}
collector = {group_size = 4, n_async = 16, n_batch = 8, max_staleness = 1}
rewards = {max_length = 100, language = 0.0}
checkpoints = {every = 1, keep = 2}
evaluation = {data = {kind = "embedded", problems = 4, seed = 2}, problems = 4, every = 2, attempts = 2}
curriculum = {}

[models.student]
kind = "vllm"
model = "embedded"
prompt = "plain"

[verl]
gpus_per_node = 2
overrides = OVERRIDES
"""


def written() -> str:
    return RECIPE.replace("OVERRIDES", json.dumps(OVERRIDES))


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_verls_trainer_trains_is_killed_resumes_and_leaves_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    recipe, out = tmp_path / "recipe.toml", tmp_path / "run"
    recipe.write_text(written())
    monkeypatch.setenv(VARIABLE, str(make_environment(tmp_path / "verl")))
    command = [sys.executable, "-m", "flows.pipelines.train", str(recipe), "--out", str(out)]
    started = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wait_until(lambda: last_step(out) >= 1, started)
    theirs = psutil.Process(started.pid).children(recursive=True)
    started.send_signal(signal.SIGKILL)
    started.wait()
    _, alive = psutil.wait_procs(theirs, timeout=PATIENCE_S)
    assert not alive  # they end with the process that started them
    killed_at = last_step(out)
    assert 1 <= killed_at < STEPS
    model = train(None, out, resume=True)

    steps = [row["step"] for row in read_metrics(out)]
    assert steps == list(range(STEPS + 1))  # 0 is the evaluation before
    trained = [row for row in read_metrics(out)[1:] if row["step"] != killed_at]  # verl tells of it after saving
    assert all(row["policy/gradient_norm"] > 0 for row in trained)
    assert any("reward/correctness" in row for row in trained)  # of what was sampled for the step before
    assert all(row["age/token_max"] <= 1 for row in trained)  # max_staleness
    assert {row["step"] for row in read_metrics(out) if "evaluation/pass_rate" in row} >= {0, 2}

    attempts = rows(out / "attempts.jsonl")
    groups = {row["group"] for row in attempts}
    assert len(attempts) == 4 * len(groups)
    assert groups == set(range(len(groups)))  # each once, over the kill too
    assert {row["outcome"] for row in attempts} <= {"correct", "wrong", None}
    assert any(row["newest"] > 0 for row in attempts)  # the weights of a step reached the generator
    state = json.loads((out / "verl" / "checkpoints" / f"global_step_{STEPS}" / "goldilocks.json").read_text())
    assert state["groups"] == len(groups)

    assert json.loads((model / "DONE.json").read_text())["revision"] == folder_revision(model)
    before, after = load_model(WEIGHTS), load_model(model)  # as the policy of a refresh loads it
    moved = [
        name for name, value in after.named_parameters() if not torch.equal(value, before.get_parameter(name).data)
    ]
    assert moved
    assert json.loads((out / "summary.json").read_text())["steps"] == STEPS
