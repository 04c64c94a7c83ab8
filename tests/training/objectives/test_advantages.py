"""Advantages: centring, the normalisations, which groups are dropped, and what excluded attempts do not do."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from training.objectives.credit import advantages, filter_group
from training.objectives.presets import Normalisation
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


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(-1, 2)), min_size=1, max_size=40))
def test_centred_advantages_sum_to_zero_in_every_group(pairs: list[tuple[int, float]]) -> None:
    groups, rewards = torch.tensor([g for g, _ in pairs]), torch.tensor([[r] for _, r in pairs], dtype=torch.float64)
    centred = advantages(rewards, groups, "none")
    for group in set(groups.tolist()):
        assert float(centred[groups == group].sum()) == pytest.approx(0, abs=1e-9)
    assert float(advantages(rewards, groups, "minibatch").mean()) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("normalisation", ["minibatch", "group", "components"])
def test_the_floor_keeps_equal_rewards_finite(normalisation: Normalisation) -> None:
    rewards = torch.full((4, 1), 0.3, dtype=torch.float64)
    assert advantages(rewards, torch.tensor([0, 0, 1, 1]), normalisation).abs().max() < 1e-6


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
    ],
)
def test_which_groups_are_dropped(rewards: list[Reward], by_reward: str | None, by_correctness: str | None) -> None:
    assert filter_group(rewards, "reward").drop_reason == by_reward
    assert filter_group(rewards, "correctness").drop_reason == by_correctness


def test_for_ablation_every_group_that_could_be_judged_is_kept() -> None:
    assert filter_group([RIGHT, RIGHT], "none").drop_reason is None
    assert filter_group([RIGHT, BROKEN], "none").drop_reason == "too_few_judged"
    rewards, groups = torch.tensor([[1.0], [1.0], [1.0], [0.0]]).double(), torch.tensor([0, 0, 1, 1])
    normalisations: list[Normalisation] = ["minibatch", "group", "none"]
    for normalise in normalisations:
        made = advantages(rewards, groups, normalise)
        assert made[:2].tolist() == [0.0, 0.0]
        assert made[2] == -made[3] > 0


def test_rewards_that_differ_by_rounding_only_are_equal() -> None:
    one = Reward(format=0.1, correctness=0.9, length=-0.1, language=0.1, correct=True)
    other = Reward(format=0.1, correctness=0.9, correct=True)
    assert filter_group([one, other], "reward").drop_reason == "all_correct"


def test_correct_and_wrong_with_equal_rewards_teach_nothing() -> None:
    rewards = [Reward(format=0.1, correct=True), Reward(format=0.1)]
    assert filter_group(rewards, "reward").drop_reason == "same_reward"
    assert filter_group(rewards, "correctness").drop_reason == "same_reward"


def test_excluded_attempts_are_named() -> None:
    assert filter_group([RIGHT, BROKEN, WRONG], "reward").exclusion_reasons == (None, "broken", None)
