"""Advantages: centring, the normalisations, which groups are dropped, and what excluded attempts do not do."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from training.objectives.credit import advantages, filter_group
from training.rewards import Reward

RIGHT = Reward(format=0.1, correctness=0.9, correct=True)
LATE = Reward(format=0.1, correctness=0.9, length=-0.05, correct=True)
WRONG = Reward(format=0.1)
BAD = Reward(format_error="does not start with <think>")
BROKEN = Reward(excluded_by="broken")

REWARDS = torch.tensor([[1.0], [0.0], [0.5], [0.1], [1.1], [0.1]], dtype=torch.float64)
GROUPS = torch.tensor([7, 7, 7, 2, 2, 2])
CENTRED = torch.tensor([0.5, -0.5, 0.0, -1 / 3, 2 / 3, -1 / 3], dtype=torch.float64)


def test_the_normalisations_by_hand() -> None:
    torch.testing.assert_close(advantages(REWARDS, GROUPS, "none"), CENTRED)
    std = (sum(value**2 for value in CENTRED.tolist()) / 6) ** 0.5  # the mean is 0
    torch.testing.assert_close(advantages(REWARDS, GROUPS, "minibatch"), CENTRED / std)
    grouped = advantages(REWARDS, GROUPS, "group")
    torch.testing.assert_close(grouped[:3], CENTRED[:3] / (0.5 / 3) ** 0.5)
    torch.testing.assert_close(grouped[3:], CENTRED[3:] / CENTRED[3:].std(correction=0))
    equal = torch.full((4, 1), 0.3, dtype=torch.float64)
    for normalise in ("minibatch", "group", "components"):  # a floor keeps equal rewards finite
        assert advantages(equal, torch.tensor([0, 0, 1, 1]), normalise).abs().max() < 1e-6


def test_components_are_normalised_one_by_one_and_their_sum_over_the_minibatch() -> None:
    """GDPO (arXiv 2601.05242) by hand: two rewards, and a group in which the second is equal."""
    rewards = torch.tensor([[0, 1], [1, 0], [1, 1], [0, 5], [1, 5], [0, 5]], dtype=torch.float64)
    low, high = -math.sqrt(2), math.sqrt(1 / 2)  # (0 - 2/3) / sqrt(2/9), (1 - 2/3) / sqrt(2/9)
    sums = [low + high, high + low, high + high, -high, -low, -high]
    std = math.sqrt(sum(value**2 for value in sums) / 6)  # the mean is 0
    found = advantages(rewards, GROUPS, "components")
    assert found.tolist() == pytest.approx([value / std for value in sums])


def test_gdpo_tells_apart_what_grpo_makes_equal() -> None:
    """Rewards (0, 1), (0, 2) against (0, 0) and (1, 1): sums 1 and 2 above 0 (arXiv 2601.05242)."""
    once = torch.tensor([[0.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    both = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    group, two = torch.tensor([0, 0]), torch.tensor([0, 0, 1, 1])
    for rewards in (once, both):  # GRPO: the same advantages
        assert advantages(rewards.sum(1, keepdim=True), group, "group").tolist() == [-1.0, 1.0]
    found = advantages(torch.cat([once, both]), two, "components")
    assert found[3] == pytest.approx(2 * found[1])


@pytest.mark.parametrize(
    ("rewards", "by_reward", "by_correctness"),
    [
        ([RIGHT, WRONG], None, None),
        ([RIGHT, RIGHT], "all_correct", "all_correct"),
        ([WRONG, WRONG], "none_correct", "none_correct"),
        ([BAD, BAD], "none_correct", "none_correct"),
        ([RIGHT, LATE], None, "all_correct"),  # printed constraint against prose
        ([WRONG, BAD], None, "none_correct"),
        ([RIGHT, BROKEN], "too_few_judged", "too_few_judged"),
        ([BROKEN, BROKEN], "too_few_judged", "too_few_judged"),
        ([RIGHT, RIGHT, BROKEN], "all_correct", "all_correct"),
        ([RIGHT, WRONG, BROKEN], None, None),
        ([Reward(format=0.1, correct=True), WRONG], "same_reward", "same_reward"),
        ([RIGHT, replace(RIGHT, length=-0.1, language=0.1)], "all_correct", "all_correct"),  # equal but for rounding
    ],
)
def test_which_groups_are_dropped(rewards: list[Reward], by_reward: str | None, by_correctness: str | None) -> None:
    assert filter_group(rewards, "reward").drop_reason == by_reward
    assert filter_group(rewards, "correctness").drop_reason == by_correctness
    expected = "too_few_judged" if by_reward == "too_few_judged" else None
    assert filter_group(rewards, "none").drop_reason == expected
    assert filter_group(rewards, "none").exclusion_reasons == tuple(one.excluded_by for one in rewards)
