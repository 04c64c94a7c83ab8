"""AIPO: by hand, against the on-policy gradient by enumeration, and where GRPO's clip gives nothing."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.training.objectives.test_grpo import (
    finite_differences,
    gradient,
    inputs_of,
    values,
)
from training.objectives import aipo
from training.objectives.aipo import AipoSettings, aipo_loss
from training.objectives.base import ObjectiveInputs
from training.objectives.grpo import GrpoSettings, grpo_loss


def settings(**changes: Any) -> AipoSettings:
    return AipoSettings(**changes)


def slope(inputs: ObjectiveInputs, objective: AipoSettings | GrpoSettings) -> Tensor:
    loss, _ = aipo_loss(inputs, objective) if isinstance(objective, AipoSettings) else grpo_loss(inputs, objective)
    return torch.autograd.grad(loss, inputs.logprobs)[0]


def test_a_token_beyond_the_cap_keeps_its_gradient() -> None:
    """Ratio 7, cap 5: A · 5 for AIPO, and 0 for GRPO; below the cap the ratio itself."""
    inputs = inputs_of([math.log(7)], [0.0], advantage=1.5, weight=0.5)
    assert slope(inputs, settings()).item() == pytest.approx(-0.5 * 1.5 * 5)
    assert slope(inputs, GrpoSettings()).item() == 0
    below = inputs_of([math.log(2.97)], [0.0], advantage=1.5, weight=0.5)
    assert slope(below, settings()).item() == pytest.approx(-0.5 * 1.5 * 2.97)
    _, own = aipo_loss(inputs, settings())
    assert values(own) == pytest.approx({"weight_capped": 1.0, "weight_mean": 5.0, "weight_square_mean": 25.0})


def test_without_a_cap_the_expectation_is_the_on_policy_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """One token of five, drawn by another policy."""
    monkeypatch.setattr(aipo, "RATIO_CAP", 1e12)
    chance = torch.Generator().manual_seed(2)
    at, behaviour, rewards = (torch.randn(5, generator=chance, dtype=torch.float64) for _ in range(3))

    def expected(logits: Tensor) -> Tensor:
        mu = behaviour.log_softmax(-1)
        inputs = ObjectiveInputs(logits.log_softmax(-1), mu, torch.arange(5), rewards, mu.exp())
        return aipo_loss(inputs, settings())[0]

    wanted = finite_differences(lambda logits: -(logits.softmax(-1) * rewards).sum(), at)
    torch.testing.assert_close(gradient(expected, at), wanted, atol=1e-8, rtol=1e-6)


def test_a_mean_that_holds_the_sample_scales_the_gradient_by_n_minus_1_over_n() -> None:
    n = 3
    logits = torch.tensor([0.2, -0.5, 0.4, 1.0, -0.3], dtype=torch.float64)
    rewards = torch.tensor([0.0, 1.0, 0.1, 0.0, 1.1], dtype=torch.float64)
    logp, total = logits.log_softmax(-1), torch.zeros(5, dtype=torch.float64)
    for arms in itertools.product(range(5), repeat=n):
        drawn = torch.tensor(arms)
        gains = rewards[drawn] - rewards[drawn].mean()

        def loss(at: Tensor, drawn: Tensor = drawn, gains: Tensor = gains) -> Tensor:
            weights = torch.full((n,), 1 / n, dtype=torch.float64)
            inputs = ObjectiveInputs(at.log_softmax(-1)[drawn], logp[drawn], torch.arange(n), gains, weights)
            return aipo_loss(inputs, settings())[0]

        total += logp[drawn].sum().exp() * gradient(loss, logits)
    wanted = gradient(lambda at: -(at.softmax(-1) * rewards).sum(), logits)
    torch.testing.assert_close(total, wanted * (n - 1) / n)


def test_tokens_that_do_not_count_do_nothing_whatever_they_hold() -> None:
    inputs = inputs_of([-1.0, -math.inf], [-1.5, -math.inf], advantage=1.0)
    masked = ObjectiveInputs(
        inputs.logprobs,
        inputs.generator_logprobs,
        inputs.sequence_index,
        inputs.advantages,
        inputs.token_weights,
        torch.tensor([True, False]),
    )
    assert slope(masked, settings()).tolist() == pytest.approx([-math.exp(0.5), 0.0])
