"""GRPO: hand-computed losses and clipping, its KL term by enumeration, and sums over micro-batches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from training.config import ComputeSettings
from training.objectives import reference_kl
from training.objectives.base import ObjectiveInputs, Statistic
from training.objectives.credit import token_weights
from training.objectives.grpo import GrpoSettings, grpo_loss
from training.objectives.step_statistics import joined, measured_over_ranks, policy_statistics
from training.optimisation.distributed import DistributedContext


def inputs_of(logprobs: list[float], behaviour: list[float], advantage: float, weight: float = 1.0) -> ObjectiveInputs:
    """One sequence."""
    return ObjectiveInputs(
        logprobs=torch.tensor(logprobs, dtype=torch.float64, requires_grad=True),
        generator_logprobs=torch.tensor(behaviour, dtype=torch.float64),
        sequence_index=torch.zeros(len(logprobs), dtype=torch.int64),
        advantages=torch.tensor([advantage], dtype=torch.float64),
        token_weights=torch.tensor([weight], dtype=torch.float64),
    )


def values(statistics: Mapping[str, Statistic]) -> dict[str, float]:
    """The numbers of a step on one process."""
    return {
        name: one.value for name, one in measured_over_ranks(statistics, DistributedContext(ComputeSettings())).items()
    }


def summary(inputs: ObjectiveInputs, objective: GrpoSettings) -> dict[str, float]:
    """The policy's and the objective's own numbers of one micro-batch."""
    return values(joined(policy_statistics(inputs), grpo_loss(inputs, objective)[1]))


def test_the_loss_by_hand() -> None:
    """Ratios 1.5 (clipped to 1.28) and 0.5 (not clipped, A > 0); then 1.5 (not clipped, A < 0) and 0.5 (to 0.8)."""
    logprobs, behaviour = [math.log(0.6), math.log(0.2)] * 2, [math.log(0.4)] * 4
    inputs = ObjectiveInputs(
        logprobs=torch.tensor(logprobs, dtype=torch.float64),
        generator_logprobs=torch.tensor(behaviour, dtype=torch.float64),
        sequence_index=torch.tensor([0, 0, 1, 1]),
        advantages=torch.tensor([2.0, -1.0], dtype=torch.float64),
        token_weights=torch.tensor([0.25, 0.25], dtype=torch.float64),
    )
    loss, _ = grpo_loss(inputs, GrpoSettings())
    assert loss.item() == pytest.approx(-0.25 * (2 * 1.28 + 2 * 0.5 - 1.5 - 0.8))
    numbers = summary(inputs, GrpoSettings())
    assert (numbers["clip_high"], numbers["clip_low"]) == (0.25, 0.25)
    assert numbers["ratio_mean"] == pytest.approx(1.0)
    assert numbers["ratio_max"] == pytest.approx(1.5)
    assert numbers["ess"] == pytest.approx(4**2 / (4 * 5.0))  # (1.5 + .5 + 1.5 + .5)² over 4 times the sum of squares
    assert numbers["log_ratio_max"] == pytest.approx(math.log(2))
    assert numbers["kl_generator"] == pytest.approx((0.5 - math.log(1.5) - 0.5 - math.log(0.5)) / 2)


def test_one_token_cannot_outweigh_a_batch() -> None:
    """Log-ratio 30 with A < 0: the printed objective's gradient is 1e13; at 9 it is the printed one."""
    for log_ratio, loss, slope in ((30.0, math.exp(10), 0.0), (9.0, math.exp(9), math.exp(9))):
        inputs = inputs_of([0.0], [-log_ratio], advantage=-1.0)
        found, _ = grpo_loss(inputs, GrpoSettings())
        found.backward()
        assert found.item() == pytest.approx(loss)
        assert inputs.logprobs.grad is not None
        assert float(inputs.logprobs.grad) == pytest.approx(slope)
    numbers = summary(inputs_of([0.0, 0.0], [-30.0, -9.0], advantage=-1.0), GrpoSettings())
    assert numbers["ratio_clamped"] == 0.5
    dual = inputs_of([math.log(4)], [0.0], advantage=-1.0)  # min(r A, clip(r) A), but at least 3 A (1912.09729)
    assert grpo_loss(dual, GrpoSettings(preset="dual_clip"))[0].item() == pytest.approx(3.0)
    assert numbers["ratio_max"] == pytest.approx(math.exp(20))  # measured ratios stay finite too
    assert math.isfinite(summary(inputs_of([0.0], [-800.0], advantage=-1.0), GrpoSettings())["kl_generator"])


def test_engine_and_staleness_are_measured_apart() -> None:
    """Log-ratios 0.1 and -0.3 where trainer and generator have the same weights, 1 and -2 elsewhere; one masked."""
    log_ratios, same = [0.1, -0.3, 1.0, -2.0, 5.0], [True, True, False, False, True]
    mask = torch.tensor([True, True, True, True, False])
    inputs = replace(inputs_of(log_ratios, [0.0] * 5, 1.0), mask=mask, on_policy=torch.tensor(same))
    numbers = values(policy_statistics(inputs))
    names = ("mismatch_share", "mismatch_mean", "mismatch_max", "stale_mean")
    assert [numbers[name] for name in names] == pytest.approx([0.5, 0.2, 0.3, 1.5])
    assert numbers["mismatch_kl"] == pytest.approx((math.exp(0.1) - 1.1 + math.exp(-0.3) - 0.7) / 2)
    assert numbers["stale_kl"] == pytest.approx((math.e - 2 + math.exp(-2) + 1) / 2)
    stale = values(policy_statistics(replace(inputs, on_policy=torch.zeros(5, dtype=torch.bool))))
    assert stale["mismatch_share"] == 0
    assert math.isnan(stale["mismatch_kl"])  # not 0: nothing was measured


def test_token_weights_by_hand() -> None:
    lengths, groups = torch.tensor([1, 3, 4, 0]), torch.tensor([5, 5, 9, 9])
    assert token_weights(lengths, groups, "group").tolist() == pytest.approx([1 / 8, 1 / 8, 1 / 8, 0])
    assert token_weights(lengths, groups, "batch").tolist() == pytest.approx([1 / 8, 1 / 8, 1 / 8, 0])
    assert token_weights(lengths, groups, "sequence").tolist() == pytest.approx([1 / 3, 1 / 9, 1 / 12, 0])
    uneven = token_weights(torch.tensor([1, 1, 8]), torch.tensor([0, 0, 1]), "group")
    assert uneven.tolist() == pytest.approx([1 / 4, 1 / 4, 1 / 16])
    assert token_weights(torch.tensor([1, 1, 8]), torch.tensor([0, 0, 1]), "batch").tolist() == pytest.approx([0.1] * 3)


def test_the_entropy_bonus_is_weighted_like_the_tokens() -> None:
    inputs = inputs_of([-1.0, -1.0], [-1.0, -1.0], advantage=0.0, weight=0.5)
    entropy = torch.tensor([1.0, 3.0], dtype=torch.float64, requires_grad=True)
    loss, _ = grpo_loss(replace(inputs, entropy=entropy), GrpoSettings(entropy_coef=0.01))
    assert loss.item() == pytest.approx(-0.02)
    for term, objective in (("entropy", GrpoSettings(entropy_coef=0.1)), ("reference", GrpoSettings(kl_coef=0.1))):
        with pytest.raises(ValueError, match=term):
            grpo_loss(inputs, objective)
    loss.backward()
    torch.testing.assert_close(entropy.grad, torch.full((2,), -0.005, dtype=torch.float64))


def gradient(function: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
    logits = at.clone().requires_grad_()
    return torch.autograd.grad(function(logits), logits)[0]


def test_tokens_that_do_not_count_do_nothing_whatever_they_hold() -> None:
    inputs = inputs_of([-1.3, -math.inf, -2.0], [-1.5, -math.inf, -2.0], advantage=1.0)
    masked = replace(inputs, mask=torch.tensor([True, False, True]))
    loss, _ = grpo_loss(masked, GrpoSettings())
    loss.backward()
    assert loss.item() == pytest.approx(-(math.exp(0.2) + 1))
    assert inputs.logprobs.grad is not None
    assert inputs.logprobs.grad[1] == 0
    assert summary(masked, GrpoSettings())["ratio_mean"] == pytest.approx((math.exp(0.2) + 1) / 2)
    empty = inputs_of([], [], advantage=1.0)
    assert grpo_loss(empty, GrpoSettings())[0].item() == 0
    numbers = summary(empty, GrpoSettings())
    assert math.isnan(numbers["clip_low"])  # a share of nothing is not 0
    assert numbers["ratio_max"] == -math.inf


def logprobs_of(logits: Tensor) -> Tensor:
    """Return [9, 2] log-probabilities of the tokens of all sequences of two tokens out of three.

    The logits are of the first token, then of the second for each first one.
    """
    logp, pairs = logits.log_softmax(-1), itertools.product(range(3), repeat=2)
    return torch.stack([torch.stack([logp[0, first], logp[1 + first, second]]) for first, second in pairs])


@pytest.mark.parametrize("behaviour", [3, 5])
def test_the_kl_term_has_the_gradient_of_the_sequence_kl(behaviour: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On policy (3) and off policy (5), each sequence as often as the behaviour draws it (arXiv 2506.09477)."""
    monkeypatch.setattr(reference_kl, "MAX_KL_RATIO", 1e9)
    draw = {seed: torch.Generator().manual_seed(seed) for seed in (3, 4, 5)}
    policies = {seed: torch.randn(4, 3, generator=one, dtype=torch.float64) for seed, one in draw.items()}
    reference, mu = logprobs_of(policies[4]), logprobs_of(policies[behaviour])

    def loss(logits: Tensor) -> Tensor:
        inputs = ObjectiveInputs(
            logprobs_of(logits).flatten(),
            mu.flatten(),
            torch.repeat_interleave(torch.arange(9), 2),
            torch.zeros(9, dtype=torch.float64),
            mu.sum(-1).exp(),
            reference_logprobs=reference.flatten(),
        )
        return grpo_loss(inputs, GrpoSettings(kl_coef=1.0))[0]

    def sequence_kl(logits: Tensor) -> Tensor:
        own = logprobs_of(logits).sum(-1)
        return (own.exp() * (own - reference.sum(-1))).sum()

    torch.testing.assert_close(gradient(loss, policies[3]), gradient(sequence_kl, policies[3]), atol=1e-8, rtol=1e-6)


def test_the_kl_to_the_reference_by_hand_where_it_is_zero_and_where_it_is_capped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One token each, e times and as likely as under the reference: r - 1 - log r for r = 1/e and 1."""
    settings = GrpoSettings(kl_coef=1.0)
    inputs = replace(inputs_of([-1.0, -0.3], [-1.0, -0.3], 0.0), reference_logprobs=torch.tensor([-2.0, -0.3]).double())
    assert summary(inputs, settings)["kl_reference"] == pytest.approx(math.exp(-1) / 2)
    same = replace(inputs, reference_logprobs=inputs.logprobs.detach())
    loss, _ = grpo_loss(same, settings)
    assert (loss.item(), summary(same, settings)["kl_reference"]) == (0, 0)
    assert torch.autograd.grad(loss, inputs.logprobs)[0].abs().max() == 0
    monkeypatch.setattr(reference_kl, "MAX_KL_RATIO", 2.0)
    stale = replace(inputs_of([0.0], [-9.0], 0.0), reference_logprobs=torch.tensor([-1.0]).double())
    (slope,) = torch.autograd.grad(grpo_loss(stale, settings)[0], stale.logprobs)
    assert slope.item() == pytest.approx(2.0 * 1.0)  # the ratio e^9 counts as 2, the log-ratio is 1
