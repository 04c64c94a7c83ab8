"""Advantages: centring, the three normalisations, which groups are dropped, and what excluded attempts do not do."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from training.objectives.advantages import advantage_moments, advantages, centre_rewards, filter_group
from training.rewards import Reward

RIGHT = Reward(format=0.1, correctness=0.9, correct=True)
LATE = Reward(format=0.1, correctness=0.9, length=-0.05, correct=True)
WRONG = Reward(format=0.1)
BAD = Reward(format_error="does not start with <think>")
BROKEN = Reward(excluded_by="broken")

REWARDS = torch.tensor([1.0, 0.0, 0.5, 0.1, 1.1, 0.1])
GROUPS = torch.tensor([7, 7, 7, 2, 2, 2])


def test_centring_by_hand() -> None:
    wanted = torch.tensor([0.5, -0.5, 0.0, -1 / 3, 2 / 3, -1 / 3], dtype=torch.float64)
    torch.testing.assert_close(centre_rewards(REWARDS, GROUPS), wanted, atol=1e-7, rtol=0)


def test_the_three_normalisations_by_hand() -> None:
    centred = centre_rewards(REWARDS, GROUPS)
    torch.testing.assert_close(advantages(REWARDS, GROUPS, normalisation="none"), centred)
    std = (sum(value**2 for value in centred.tolist()) / 6) ** 0.5  # the mean is 0
    torch.testing.assert_close(advantages(REWARDS, GROUPS), centred / std)
    first = (0.5 / 3) ** 0.5
    grouped = advantages(REWARDS, GROUPS, normalisation="group")
    torch.testing.assert_close(grouped[:3], centred[:3] / first)
    torch.testing.assert_close(grouped[3:], centred[3:] / centred[3:].std(correction=0))


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(-1, 2)), min_size=1, max_size=40))
def test_centred_advantages_sum_to_zero_in_every_group(pairs: list[tuple[int, float]]) -> None:
    groups, rewards = torch.tensor([g for g, _ in pairs]), torch.tensor([r for _, r in pairs], dtype=torch.float64)
    centred = centre_rewards(rewards, groups)
    for group in set(groups.tolist()):
        assert float(centred[groups == group].sum()) == pytest.approx(0, abs=1e-9)
    assert float(advantages(rewards, groups).mean()) == pytest.approx(0, abs=1e-6)


def test_the_floor_keeps_equal_rewards_finite() -> None:
    for normalise in ("minibatch", "group"):
        found = advantages(torch.full((4,), 0.3), torch.tensor([0, 0, 1, 1]), normalisation=normalise)  # type: ignore[arg-type]
        assert found.abs().max() < 1e-6


def test_ranks_add_up_their_moments() -> None:
    whole = advantages(REWARDS, GROUPS)
    ranks = [slice(0, 3), slice(3, 6)]
    total = torch.stack([advantage_moments(centre_rewards(REWARDS[rank], GROUPS[rank])) for rank in ranks]).sum(0)
    parts = [advantages(REWARDS[rank], GROUPS[rank], total=total) for rank in ranks]
    torch.testing.assert_close(torch.cat(parts), whole)


def test_a_group_split_over_minibatches_has_a_mean_that_is_taken_off() -> None:
    centred = centre_rewards(REWARDS, GROUPS)
    part = centred[[0, 2, 4]]
    total = advantage_moments(part)
    found = (part - total[1] / total[0]) / part.std(correction=0)
    assert float(found.mean()) == pytest.approx(0, abs=1e-12)


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
    rewards, groups = torch.tensor([1.0, 1.0, 1.0, 0.0]), torch.tensor([0, 0, 1, 1])
    for normalise in ("minibatch", "group", "none"):
        made = advantages(rewards, groups, normalisation=normalise)
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
