"""`goldilocks explain` and `status` of a training run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from tests.flows.conftest import goldilocks, refusal
from tests.training.engines.embedded.test_run import small
from training.engines.embedded.run import train
from training.rollouts.attempt_log import count_attempts, read_attempts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "small"
    train(small(steps=1), Path(), out)
    return out


def test_one_problem_is_explained(trained: Path) -> None:
    attempts = read_attempts(trained, purpose="training")
    problem, text = attempts.row(0, named=True)["problem"], attempts["text"][0]
    said = goldilocks("explain", trained, problem[:12]).out.splitlines()
    assert said[0].startswith(f"{problem}: {attempts.filter(pl.col('problem') == problem).height} attempts; reference ")
    assert any(line.startswith("  training at step 0, version 0, attempt ") and text[:40] in line for line in said)
    assert "begins 0 ids of attempted problems" in refusal("explain", trained, "xyz")


def test_status_counts_the_kept_attempts_and_says_why_a_run_ended(trained: Path, tmp_path: Path) -> None:
    counts = count_attempts(trained)
    assert (
        f"  attempts kept: evaluation {counts['evaluation']}, training {counts['training']}"
        in goldilocks("status", trained).out.splitlines()
    )
    shutil.copytree(trained, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "model")
    (tmp_path / "run" / "stalled.json").write_text(json.dumps({"step": 1, "message": "step 2 found nothing"}))
    assert "  ended: step 2 found nothing" in goldilocks("status", tmp_path / "run").out.splitlines()
