"""Corrections of what trainer and generator disagree on: by hand, by enumeration, over minibatches, ranks and runs."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.places import ROOT
from tests.training.engines.embedded.test_run import small
from tests.training.objectives.correction_step import TABLE, WIDE_BOUNDS, step
from tests.training.objectives.test_grpo import inputs_of, summary
from training.config import ComputeSettings
from training.engines.embedded.run import train
from training.evaluation.metrics import read_metrics
from training.objectives import importance
from training.objectives.base import ObjectiveInputs
from training.objectives.grpo import GrpoSettings, grpo_loss, grpo_needs
from training.optimisation.distributed import DistributedContext


def settings(kind: str) -> GrpoSettings:
    return GrpoSettings.model_validate({"correction": kind})


def scored(inputs: ObjectiveInputs, objective: GrpoSettings) -> tuple[float, list[float]]:
    """The loss and its gradient by token."""
    loss, _ = grpo_loss(inputs, objective)
    (slope,) = torch.autograd.grad(loss, inputs.logprobs)
    return loss.item(), slope.tolist()


def tokens(now: list[float], old: list[float] | None, generator: list[float], advantage: float) -> ObjectiveInputs:
    """One sequence, from probabilities."""
    inputs = inputs_of([math.log(p) for p in now], [math.log(p) for p in generator], advantage)
    if old is None:
        return inputs
    return replace(inputs, old_logprobs=torch.tensor([math.log(p) for p in old], dtype=torch.float64))


def test_truncate_by_hand_in_the_first_minibatch() -> None:
    """pi_old is pi: ratios to the generator 3 (truncated to 2) and 0.5, and nothing is clipped."""
    inputs = tokens([0.6, 0.2], None, [0.2, 0.4], advantage=1.5)
    loss, slope = scored(inputs, settings("truncate"))
    assert loss == pytest.approx(-1.5 * (2 + 0.5))
    assert slope == pytest.approx([-1.5 * 2, -1.5 * 0.5])
    assert summary(inputs, settings("truncate"))["correction_truncated"] == 0.5
    assert summary(inputs, settings("truncate"))["clip_high"] == 0


def test_truncate_by_hand_in_a_later_minibatch() -> None:
    """pi / pi_old is what is clipped: 1.2 is not, though pi / mu = 1.5 is above 1.28; 1.5 is, at weight 0.8."""
    inputs = tokens([0.6, 0.6], [0.5, 0.4], [0.4, 0.5], advantage=1.0)
    loss, slope = scored(inputs, settings("truncate"))
    assert loss == pytest.approx(-(1.25 * 1.2 + 0.8 * 1.28))
    assert slope == pytest.approx([-1.25 * 1.2, 0])
    paper = scored(inputs, GrpoSettings())
    assert paper[1] == pytest.approx([0, -1.2])


@pytest.mark.parametrize(
    ("ratio", "weight"), [(0.49, 0), (0.51, 0.51), (1.0, 1.0), (4.9, 4.9), (5.1, 0), (1e-40, 0), (1e30, 0)]
)
@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_the_mask_leaves_out_tokens_outside_its_bounds(ratio: float, weight: float, advantage: float) -> None:
    inputs = inputs_of([math.log(ratio) - 1], [-1.0], advantage)
    loss, slope = scored(inputs, settings("mask"))
    assert loss == pytest.approx(-weight * advantage)
    assert slope == pytest.approx([-weight * advantage])
    assert summary(inputs, settings("mask"))["correction_masked"] == (weight == 0)


def test_the_sequence_mask_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Geometric means of pi / mu over counted tokens: sqrt(4 · 0.5) = 1.41, 3 and none; then the paper's own ratios."""
    now, generator = [0.8, 0.1, 0.9, 0.6, 0.5], [0.2, 0.2, 0.1, 0.2, 0.5]
    inputs = ObjectiveInputs(
        logprobs=torch.tensor(now, dtype=torch.float64).log().requires_grad_(),
        generator_logprobs=torch.tensor(generator, dtype=torch.float64).log(),
        sequence_index=torch.tensor([0, 0, 1, 1, 2]),
        advantages=torch.tensor([-1.0, -1.0, 1.0], dtype=torch.float64),
        token_weights=torch.tensor([0.5, 0.5, 0.5], dtype=torch.float64),
        mask=torch.tensor([True, True, False, True, False]),
    )
    objective = settings("sequence_mask")
    loss, slope = scored(inputs, objective)
    assert loss == pytest.approx(0.5 * (4 + 0.8))
    assert slope == pytest.approx([0.5 * 4, 0, 0, 0, 0])
    assert summary(inputs, objective)["correction_masked_sequences"] == 0.5  # of the two that have tokens
    monkeypatch.setattr(importance, "SEQUENCE_MASK_BOUNDS", (0.1, 10.0))
    assert scored(inputs, objective) == scored(inputs, GrpoSettings())


def test_the_sequence_mask_looks_at_the_weights_at_the_start_of_the_batch() -> None:
    inputs = tokens([0.9], [0.3], [0.3], advantage=-1.0)
    assert scored(inputs, settings("sequence_mask"))[0] == pytest.approx(3)


@pytest.mark.parametrize("kind", ["truncate", "mask", "sequence_mask"])
def test_tokens_that_do_not_count_do_nothing_whatever_they_hold(kind: str) -> None:
    inputs = replace(
        inputs_of([-1.0, -math.inf, -2.0], [-1.1, -math.inf, -2.0], advantage=1.0),
        mask=torch.tensor([True, False, True]),
        old_logprobs=torch.tensor([-1.0, math.nan, -2.0], dtype=torch.float64),
    )
    loss, slope = scored(inputs, settings(kind))
    assert loss == pytest.approx(-(math.exp(0.1) + 1))
    assert slope == pytest.approx([-math.exp(0.1), 0, -1])


def test_without_truncation_the_expected_gradient_is_the_trainers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five arms, drawn by another engine's probabilities: E_mu of the gradient is that of E_pi[r]; with a cap it is
    not, and neither is the paper's clipped one.
    """
    chance = torch.Generator().manual_seed(2)
    logits = torch.randn(5, generator=chance, dtype=torch.float64).requires_grad_()
    mu = torch.randn(5, generator=chance, dtype=torch.float64).log_softmax(-1)
    rewards = torch.tensor([0.1, 1.0, 0.0, 1.1, 0.2], dtype=torch.float64)

    def gradient(objective: GrpoSettings) -> torch.Tensor:
        inputs = ObjectiveInputs(logits.log_softmax(-1), mu, torch.arange(5), rewards, mu.exp())
        return torch.autograd.grad(grpo_loss(inputs, objective)[0], logits)[0]

    (wanted,) = torch.autograd.grad(-(logits.softmax(-1) * rewards).sum(), logits)
    monkeypatch.setattr(importance, "TRUNCATE_CAP", 1e9)
    monkeypatch.setattr(importance, "MASK_BOUNDS", (1e-9, 1e9))
    torch.testing.assert_close(gradient(settings("truncate")), wanted)
    torch.testing.assert_close(gradient(settings("mask")), wanted)
    monkeypatch.setattr(importance, "TRUNCATE_CAP", 1.0)
    assert (gradient(settings("truncate")) - wanted).abs().max() > 1e-2
    assert (gradient(GrpoSettings()) - wanted).abs().max() > 1e-2


def test_off_by_default_and_then_no_second_pass() -> None:
    assert GrpoSettings().correction == "none"
    assert not grpo_needs(GrpoSettings()).old_logprobs
    assert grpo_needs(settings("mask")).old_logprobs


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples of `step` are no model's, so the bounds are wide."""
    monkeypatch.setattr(importance, "MASK_BOUNDS", WIDE_BOUNDS)


@pytest.mark.usefixtures("wide")
def test_old_logprobs_are_those_before_the_step_and_the_gradient_is_the_sum_over_micro_batches() -> None:
    whole, cut = (step(DistributedContext(ComputeSettings()), room) for room in (512, 60))
    assert whole is not None
    assert cut is not None
    assert cut["parts"] > whole["parts"] == 1
    assert cut["old"] == [pytest.approx(one, abs=1e-5) for one in whole["old"]]
    assert cut["statistics"] == pytest.approx(whole["statistics"], rel=1e-5, abs=1e-6)
    assert 0 < whole["statistics"]["correction_masked"] < 1
    assert torch.allclose(cut["gradient"], whole["gradient"], rtol=0, atol=1e-6)
    assert whole["gradient"].abs().max() > 1e-3


@pytest.mark.slow
@pytest.mark.usefixtures("wide")
def test_two_ranks_have_the_gradient_of_one(tmp_path: Path) -> None:
    alone = step(DistributedContext(ComputeSettings()), 60)
    assert alone is not None
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [sys.executable, *launcher, "-m", "tests.training.objectives.correction_step", str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    both = json.loads((tmp_path / "step.json").read_text())
    assert both["old"] == [pytest.approx(one, abs=1e-5) for one in alone["old"]]
    assert both["statistics"] == pytest.approx(alone["statistics"], rel=1e-5, abs=1e-6)
    assert torch.allclose(torch.load(tmp_path / "gradient.pt"), alone["gradient"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["truncate", pytest.param("sequence_mask", marks=pytest.mark.slow)])
def test_a_run_with_two_minibatches_a_batch_corrects_and_says_how_much(kind: str, tmp_path: Path) -> None:
    sizes = {"max_staleness": 0, "group_size": 4, "n_async": 16, "n_batch": 16, "n_minibatch": 8}
    made = small(steps=2, collector=sizes, objective={**TABLE, "correction": kind}, evaluation={"data": None})
    train(made, Path(), tmp_path / "run")
    name = {"truncate": "correction_truncated", "sequence_mask": "correction_masked_sequences"}[kind]
    rows = read_metrics(tmp_path / "run")
    assert len(rows) == 2
    for row in rows:
        assert 0 <= row[f"policy/{name}"] < 1
        assert 0.2 < row["policy/mismatch_share"] < 0.8  # the second minibatch is scored by newer weights
        assert row["policy/mismatch_max"] < 1e-3 < row["policy/stale_max"]
