"""Evaluations have one version of the weights, among rollouts too, and the best model is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.training.engines.embedded.test_resume import weights
from tests.training.engines.embedded.test_run import small
from training.engines.embedded.run import train
from training.evaluation.metrics import read_metrics
from training.rollouts.attempt_log import read_attempts

pytestmark = pytest.mark.slow


EVERY = {"every": 1, "keep": 9}


def evaluated(out: Path) -> list[tuple[Any, ...]]:
    """The attempts of all evaluations: problem, index, step, first and last version of their tokens, text."""
    columns = ["problem", "index", "step", "version", "newest_version", "text"]
    return sorted(read_attempts(out, columns, purpose="evaluation").rows())


def numbers(out: Path) -> list[dict[str, float]]:
    return [{k: v for k, v in row.items() if k.startswith("evaluation/")} for row in read_metrics(out)]


def test_evaluations_among_rollouts_have_one_version(tmp_path: Path) -> None:
    train(small(steps=2, checks=False, evaluation={"every": 1}), Path(), tmp_path)
    assert [row["step"] for row in read_metrics(tmp_path)] == [0, 1, 2]
    assert [row["evaluation/version"] for row in numbers(tmp_path)] == [0, 1, 2]
    assert {(step, old, new) for _, _, step, old, new, _ in evaluated(tmp_path)} == {(s, s, s) for s in range(3)}


def test_the_best_model_is_that_of_the_step_that_was_evaluated(tmp_path: Path) -> None:
    train(small(steps=1, checks=False, checkpoints=EVERY, evaluation={"keep_best": True}), Path(), tmp_path)
    best = json.loads((tmp_path / "best" / "best.json").read_text())
    rates = {
        row["step"]: row["evaluation/pass_rate"] for row in read_metrics(tmp_path) if "evaluation/pass_rate" in row
    }
    assert best["pass_rate"] == rates[best["step"]] == max(rates.values())
    if best["step"] == 1:
        assert (tmp_path / "best/model.safetensors").read_bytes() == weights(tmp_path)
