"""verl's padded tensors through our objectives: weights folded into advantages, padding, sums over micro-batches."""

from __future__ import annotations

import pytest
import torch

from training.engines.verl.tensors import micro_batch_loss, weighted_advantages
from training.objectives.grpo import GrpoSettings


def batch() -> tuple[torch.Tensor, torch.Tensor, list[str]]:
    """Two groups of two; the last row is padding."""
    mask = torch.tensor([[1, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 0], [0, 0, 0]])
    rewards = torch.tensor([[0, 0, 1.0], [0.0, 0, 0], [0, 0.5, 0], [0, 0.1, 0], [0, 0, 0]])
    return rewards, mask, ["a", "a", "b", "b", "padding"]


def test_advantages_by_hand_with_the_papers_weights() -> None:
    rewards, mask, groups = batch()
    settings = GrpoSettings(advantage_normalisation="none")
    folded = weighted_advantages(rewards, mask, groups, settings, max_tokens=9)
    # group a: ±.5 over 4 tokens of one of 2 groups; group b: ±.2 over 4 tokens
    assert folded[:, 0].tolist() == pytest.approx([0.5 / 8, -0.5 / 8, 0.2 / 8, -0.2 / 8, 0.0])
    assert torch.equal(folded != 0, mask.bool())


def test_what_was_cut_off_weighs_nothing_and_minibatches_have_their_own_means() -> None:
    rewards, mask, groups = batch()
    settings = GrpoSettings(preset="dapo", advantage_normalisation="none")
    folded = weighted_advantages(rewards, mask, groups, settings, max_tokens=3)
    assert folded[0].tolist() == [0.0, 0.0, 0.0]
    assert float(folded[1, 0]) == pytest.approx(-0.5 / 5)  # one of the minibatch's five tokens that are left
    twice = weighted_advantages(rewards, mask, groups, settings, max_tokens=3, minibatches=2)
    assert torch.equal(twice, 2 * folded)


def test_the_loss_is_the_sum_over_micro_batches_and_leaves_impossible_tokens_out() -> None:
    rewards, mask, groups = batch()
    settings = GrpoSettings()
    folded = weighted_advantages(rewards, mask, groups, settings, max_tokens=9)
    chance = torch.Generator().manual_seed(1)
    logprobs = -torch.rand(mask.shape, generator=chance) - 0.1
    drawn = logprobs + 0.3 * torch.randn(mask.shape, generator=chance)
    drawn = drawn.clamp(max=0)

    def loss(places: list[int], generator: torch.Tensor) -> float:
        parts = logprobs[places].clone().requires_grad_()
        value, told = micro_batch_loss(parts, generator[places], folded[places], mask[places], settings)
        value.backward()
        assert set(told) >= {"clip_low", "clip_high"}
        assert torch.equal(parts.grad[~mask[places].bool()], torch.zeros(int((mask[places] == 0).sum())))
        return float(value.detach())

    whole = loss([0, 1, 2, 3, 4], drawn)
    assert whole == pytest.approx(loss([0, 4], drawn) + loss([1, 2, 3], drawn), rel=1e-5)
    broken = drawn.clone()
    broken[0, 1] = -9999.0
    assert loss([0], broken) != loss([0], drawn)
    assert abs(loss([0], broken)) < 10
