"""Killed by kill -9 and resumed: nothing is trained twice; a synchronous run ends as an undisturbed one, bit by bit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomli_w
import torch

from flows.run.training import main
from tests.places import ROOT, in_gate
from tests.training.engines.embedded.test_run import lines, small
from tests.waiting import PATIENCE_S, wait_until
from training.evaluation.metrics import read_metrics
from training.optimisation.model import load_model
from training.recipe import TrainRecipe
from training.rollouts.attempt_log import read_attempts, verdict_tables

STEPS = 4
SYNCHRONOUS: dict[str, Any] = {"collector": {"max_staleness": 0}}


def asked(made: TrainRecipe, folder: Path) -> Path:
    path = folder / "recipe.toml"
    path.write_text(tomli_w.dumps(made.model_dump(mode="json", exclude_none=True)))
    return path


def command(*arguments: str, ranks: int = 1) -> list[str]:
    many = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
    return [sys.executable, *many, "-m", "flows.run.training", *arguments]


def killed(at: int, *arguments: str) -> None:
    out = Path(arguments[-1])
    process = subprocess.Popen(
        command(*arguments), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    wait_until(lambda: (out / "metrics.jsonl").exists() and len(read_whole(out)) > at, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def read_whole(out: Path) -> list[str]:
    """Steps' rows, step 0's among them or not."""
    return [line for line in (out / "metrics.jsonl").read_text().splitlines() if '"step": 0' not in line]


def weights(out: Path) -> bytes:
    return (out / "model/model.safetensors").read_bytes()


def texts(out: Path) -> dict[str, bytes]:
    files = [path for name in ("attempts", "verdicts") for path in (out / name).rglob("*") if path.is_file()]
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


def policy(out: Path) -> list[dict[str, float]]:
    """What does not depend on the clock."""
    groups = ("reward/", "batch/", "sampled/", "policy/", "length/", "age/", "evaluation/")
    return [{k: v for k, v in row.items() if k.startswith(groups)} for row in read_metrics(out)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("synchronous")
    assert main([str(asked(small(steps=STEPS, **SYNCHRONOUS), folder)), "--out", str(folder / "run")]) == 0
    return folder


@pytest.mark.slow
@in_gate("training/resume-to-the-bit")
def test_a_killed_synchronous_run_ends_as_an_undisturbed_one(undisturbed: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    killed(2, str(undisturbed / "recipe.toml"), "--out", str(out))
    assert main(["--resume", str(out)]) == 0
    assert weights(out) == weights(undisturbed / "run")
    assert policy(out) == policy(undisturbed / "run")
    assert lines(out / "batches.jsonl") == lines(undisturbed / "run" / "batches.jsonl")
    assert lines(out / "attempts.jsonl") == lines(undisturbed / "run" / "attempts.jsonl")
    assert texts(out) == texts(undisturbed / "run")


@pytest.mark.slow
def test_a_killed_asynchronous_run_trains_on_no_attempt_twice(tmp_path: Path) -> None:
    out = tmp_path / "run"
    killed(2, str(asked(small(steps=STEPS), tmp_path)), "--out", str(out))
    assert main(["--resume", str(out)]) == 0
    trained = [tuple(one) for row in lines(out / "batches.jsonl") for one in row["attempts"]]
    assert len(trained) == len(set(trained)) == 16 * STEPS
    judged = [(row["group"], row["index"]) for row in lines(out / "attempts.jsonl")]
    assert len(judged) == len(set(judged))
    kept = read_attempts(out, ["problem", "index", "rollout_group", "step", "tokens"], purpose="training")
    named = [(row["group"], row["problem"], row["step"], row["tokens"]) for row in lines(out / "attempts.jsonl")]
    assert sorted(kept.select("rollout_group", "problem", "step", "tokens").rows()) == sorted(named)
    assert kept.select("problem", "index").n_unique() == kept.height
    evaluated = read_attempts(out, ["problem", "index", "step"], purpose="evaluation")
    assert evaluated.n_unique() == evaluated.height == 6 * 2 * 3  # at steps 0, 2 and 4
    verdicts = pl.concat(verdict_tables(out))
    assert verdicts.select("problem", "sampling", "index").n_unique() == kept.height + evaluated.height
    ledger = json.loads((out / "summary.json").read_text())["ledger"]
    assert ledger["trained"] == len(trained)
    assert ledger["admitted"] == ledger["trained"] + sum(ledger["dropped"].values())
    assert [row["step"] for row in read_metrics(out)] == list(range(STEPS + 1))


@pytest.mark.slow
@in_gate("training/two-ranks")
def test_two_processes_have_the_loss_curve_of_one_and_can_hand_over_to_it(undisturbed: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    ranks = command(str(undisturbed / "recipe.toml"), "--set", "steps=2", "--out", str(out), ranks=2)
    done = subprocess.run(ranks, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr[-3000:]
    assert main(["--resume", str(out), "--set", f"steps={STEPS}"]) == 0
    for one, two in zip(policy(undisturbed / "run")[1:], policy(out)[1:], strict=True):
        for name in ("policy/loss", "policy/gradient_norm", "policy/entropy", "reward/total"):
            assert two[name] == pytest.approx(one[name], abs=1e-4), name
    alone, handed = (load_model(folder / "model").state_dict() for folder in (undisturbed / "run", out))
    assert all(torch.allclose(handed[name], value, atol=1e-4) for name, value in alone.items())
