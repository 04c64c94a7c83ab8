"""DPPO: its mask token by token, both distances by hand, and its gradient against a policy gradient (2602.04879)."""

from __future__ import annotations

import math

import pytest
import torch

from training.objectives.base import ObjectiveInputs
from training.objectives.dppo import DppoSettings, binary_distance, dppo_loss
from training.objectives.grpo import GrpoSettings, grpo_loss


def inputs_of(policy: list[float], generator: list[float], advantage: float) -> ObjectiveInputs:
    """One token a sequence, of these probabilities."""
    count = len(policy)
    return ObjectiveInputs(
        logprobs=torch.tensor(policy, dtype=torch.float64).log().requires_grad_(),
        generator_logprobs=torch.tensor(generator, dtype=torch.float64).log(),
        sequence_index=torch.arange(count),
        advantages=torch.full((count,), advantage, dtype=torch.float64),
        token_weights=torch.ones(count, dtype=torch.float64),
    )


def slopes(inputs: ObjectiveInputs, settings: DppoSettings) -> list[float]:
    loss, _ = dppo_loss(inputs, settings)
    found: list[float] = torch.autograd.grad(loss, inputs.logprobs)[0].tolist()
    return found


@pytest.mark.parametrize("divergence", ["tv", "kl"])
def test_only_what_leads_out_of_the_region_loses_its_gradient(divergence: str) -> None:
    settings = DppoSettings(divergence=divergence)  # type: ignore[arg-type]
    policy, generator = [0.9, 0.1, 0.55], [0.5, 0.5, 0.5]  # far up, far down, near
    ratios = [one / other for one, other in zip(policy, generator, strict=True)]
    up, down = slopes(inputs_of(policy, generator, 2.0), settings), slopes(inputs_of(policy, generator, -2.0), settings)
    assert up == pytest.approx([0.0, -2 * ratios[1], -2 * ratios[2]])
    assert down == pytest.approx([2 * ratios[0], 0.0, 2 * ratios[2]])
    _, own = dppo_loss(inputs_of(policy, generator, 2.0), settings)
    assert float(own["masked"].total / own["masked"].count) == pytest.approx(1 / 3)


def test_a_rare_token_keeps_the_gradient_that_grpo_clips_and_a_frequent_one_loses_it() -> None:
    """Ratio 100 moves 1e-3 of probability; ratio .8 moves .2 (the paper's own example)."""
    rare, frequent = inputs_of([1e-3], [1e-5], 1.0), inputs_of([0.79], [0.99], -1.0)
    assert slopes(rare, DppoSettings()) == pytest.approx([-100.0])
    assert slopes(frequent, DppoSettings()) == [0.0]
    clipped = torch.autograd.grad(grpo_loss(rare, GrpoSettings())[0], rare.logprobs)[0]
    kept = torch.autograd.grad(grpo_loss(inputs := inputs_of([0.81], [0.99], -1.0), GrpoSettings())[0], inputs.logprobs)
    assert clipped.tolist() == [0.0]
    assert kept[0].tolist() == pytest.approx([0.81 / 0.99])


def test_the_distances_by_hand() -> None:
    policy, generator = torch.tensor([0.75, 0.2]).double().log(), torch.tensor([0.99, 0.2]).double().log()
    assert binary_distance(policy, generator, "tv").tolist() == pytest.approx([0.24, 0.0])
    kl = 0.99 * math.log(0.99 / 0.75) + 0.01 * math.log(0.01 / 0.25)
    assert binary_distance(policy, generator, "kl").tolist() == pytest.approx([kl, 0.0])
    certain = torch.zeros(1)
    assert binary_distance(certain, certain, "kl").tolist() == [0.0]
