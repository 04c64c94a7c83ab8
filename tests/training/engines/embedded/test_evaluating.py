"""Evaluations beside training: one version of the weights, the same to the bit in a synchronous run, and never lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.training.engines.embedded.test_resume import SYNCHRONOUS, policy, texts, weights
from tests.training.engines.embedded.test_run import lines, small
from training.engines.embedded.evaluating import Evaluations, first_row
from training.engines.embedded.run import train
from training.evaluation.metrics import read_metrics
from training.optimisation.checkpoint import last_checkpoint
from training.rollouts.attempt_log import read_attempts

pytestmark = pytest.mark.slow

STEPS = 3
EVERY = {"every": 1, "keep": 9}


def evaluated(out: Path) -> list[tuple[Any, ...]]:
    """The attempts of all evaluations: problem, index, step, first and last version of their tokens, text."""
    columns = ["problem", "index", "step", "version", "newest_version", "text"]
    return sorted(read_attempts(out, columns, purpose="evaluation").rows())


def numbers(out: Path) -> list[dict[str, float]]:
    return [{k: v for k, v in row.items() if k.startswith("evaluation/")} for row in read_metrics(out)]


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A synchronous run whose evaluations run beside training, with a checkpoint after every step."""
    out = tmp_path_factory.mktemp("beside")
    train(small(steps=STEPS, checks=False, checkpoints=EVERY, **SYNCHRONOUS), Path(), out)
    return out


def test_a_synchronous_run_is_the_same_to_the_bit_with_evaluations_beside_it_or_not(
    beside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Evaluations, "is_beside", property(lambda _: False))
    table = small(steps=STEPS, checks=False, checkpoints=EVERY, **SYNCHRONOUS)
    train(table, Path(), tmp_path)
    assert weights(beside) == weights(tmp_path)
    assert policy(beside) == policy(tmp_path)
    assert lines(beside / "attempts.jsonl") == lines(tmp_path / "attempts.jsonl")
    assert evaluated(beside) == evaluated(tmp_path)
    assert json.loads((beside / "summary.json").read_text())["evaluations"].keys() == {"0", "2", "3"}


def test_going_on_from_a_checkpoint_whose_row_waits_loses_no_row_and_no_bit(beside: Path, tmp_path: Path) -> None:
    step = 2  # evaluated every other step
    out = tmp_path / "run"
    shutil.copytree(beside, out)
    for folder in (out / "checkpoints").glob("step-*"):
        if int(folder.name[5:]) > step:
            shutil.rmtree(folder)
    for name in ("model", "summary.json"):
        shutil.rmtree(out / name) if (out / name).is_dir() else (out / name).unlink()
    checkpoint = last_checkpoint(out)
    assert checkpoint is not None
    assert checkpoint.state["evaluation"] is not None
    assert first_row(checkpoint) == step
    train(small(steps=STEPS, checks=False, checkpoints=EVERY, **SYNCHRONOUS), Path(), out, resume=True)
    assert weights(out) == weights(beside)
    assert policy(out) == policy(beside)
    assert evaluated(out) == evaluated(beside)
    assert texts(out) == texts(beside)


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
