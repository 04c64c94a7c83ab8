"""Advantages and credit by hand, by enumeration and through the seam; which groups are dropped."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from tests.training.optimisation.test_trainer import recipe
from training.objectives.base import CreditInputs
from training.objectives.credit import advantages, filter_group
from training.objectives.grpo import GrpoSettings, grpo_credit, grpo_decision
from training.objectives.set_credit import best_of_k_credit, majority_credit
from training.rewards import Reward

RIGHT, WRONG = Reward(format=0.1, correctness=0.9, correct=True), Reward(format=0.1)
BAD, BROKEN = Reward(format_error="no boxed answer"), Reward(excluded_by="broken")


def settings(**changes: Any) -> GrpoSettings:
    return GrpoSettings(**{"advantage_normalisation": "none", "k": 2, **changes})


def test_a_vote_takes_answers_by_their_text_and_correct_ones_by_their_verdict() -> None:
    answers = ["1/2", "0.5", "3  4", "3 4", None]
    rewards = [RIGHT, RIGHT, WRONG, WRONG, BAD]
    inputs = CreditInputs(rewards, torch.tensor([1] * 5), torch.tensor([0] * 5), answers)
    wanted = majority_credit(["r", "r", "w", "w", None], [True, True, False, False, False], 3)
    found = grpo_credit(inputs, settings(credit="majority", k=3)).advantages
    assert found.tolist() == pytest.approx(wanted.tolist())
    assert found[0] > 0 > found[2]
    assert found[4] == 0
    scaled = grpo_credit(inputs, settings(credit="majority", k=3, advantage_normalisation="group")).advantages
    torch.testing.assert_close(scaled, found / found.std(correction=0))  # not centred again


@pytest.mark.parametrize(
    ("rewards", "changes", "reason"),
    [
        ([RIGHT, WRONG, WRONG], {}, None),
        ([RIGHT, RIGHT, WRONG], {"k": 3}, "no_credit"),  # any three hold a right one, with it and without
        ([WRONG, WRONG, BAD], {"credit": "majority"}, "none_correct"),  # a vote knows no format
        ([RIGHT, RIGHT, WRONG], {"credit": "majority"}, None),
        ([RIGHT, WRONG, BROKEN], {"k": 3}, "too_few_judged"),
    ],
)
def test_groups_without_credit_are_dropped(rewards: list[Reward], changes: dict[str, Any], reason: str | None) -> None:
    decision = grpo_decision(rewards, settings(**{"credit": "pass_at_k", **changes}))
    assert decision.drop_reason == reason
    assert decision.exclusion_reasons == tuple(reward.excluded_by for reward in rewards)


@pytest.mark.parametrize(
    ("table", "size", "said"),
    [
        ({"credit": "pass_at_k", "k": 8}, 4, "objective.k = 8 is more than collector.group_size = 4"),
        ({"credit": "majority", "k": 8}, 32, "goes over 10518300 subsets of k = 8"),
    ],
)
def test_a_group_that_is_too_small_or_too_large_is_refused(table: dict[str, Any], size: int, said: str) -> None:
    sizes = {"group_size": size, "n_async": size, "n_batch": size}
    with pytest.raises(ValidationError, match=said):
        recipe(objective=table, collector=sizes)
    for allowed in ({**table, "k": 2}, {"k": 8}):
        assert recipe(objective=allowed, collector=sizes).collector.group_size == size


LATE = Reward(format=0.1, correctness=0.9, length=-0.05, correct=True)
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


@pytest.mark.parametrize(
    ("rewards", "by_reward", "by_correctness"),
    [
        ([RIGHT, WRONG], None, None),
        ([RIGHT, RIGHT], "all_correct", "all_correct"),
        ([WRONG, WRONG], "none_correct", "none_correct"),
        ([RIGHT, LATE], None, "all_correct"),  # printed constraint against prose
        ([WRONG, BAD], None, "none_correct"),
        ([RIGHT, BROKEN], "too_few_judged", "too_few_judged"),
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


ARMS = 4
LOGITS = torch.tensor([0.3, -0.4, 0.8, 0.1], dtype=torch.float64)
ANSWERS = ["7", "a", "a", None]
SOLVED = [True, False, False, False]


def share_right(arms: Sequence[int]) -> float:
    votes = Counter("right" if SOLVED[arm] else ANSWERS[arm] for arm in arms if ANSWERS[arm])
    winners = [answer for answer, count in votes.items() if count == max(votes.values())]
    return 1 / len(winners) if "right" in winners else 0.0


def expected(logits: torch.Tensor, k: int, worth: Callable[[Sequence[int]], float]) -> torch.Tensor:
    chances, draws = logits.softmax(-1), itertools.product(range(ARMS), repeat=k)
    return torch.stack([chances[list(arms)].prod() * worth(arms) for arms in draws]).sum()


def estimated(n: int, credit: Callable[[Sequence[int]], Sequence[float]]) -> list[float]:
    """Return the expectation, over all groups of n, of the mean of gain times the score."""
    chances = LOGITS.softmax(-1).numpy()
    scores = np.eye(ARMS) - chances  # row: the gradient of an arm's log-probability
    total = np.zeros(ARMS)
    for arms in itertools.product(range(ARMS), repeat=n):
        gains = np.asarray(credit(arms))
        total += math.prod(chances[arm] for arm in arms) * (gains[:, None] * scores[list(arms)]).mean(0)
    return list(total)


def slope(k: int, worth: Callable[[Sequence[int]], float]) -> list[float]:
    logits = LOGITS.clone().requires_grad_()
    return torch.autograd.grad(expected(logits, k, worth), logits)[0].tolist()


@pytest.mark.parametrize(("rewards", "k"), [([0.0, 1.0, 0.0, 1.0], 3), ([0.0, 0.1, 1.0, 1.1], 2)])
def test_the_gradient_is_that_of_the_best_of_k(rewards: list[float], k: int) -> None:
    found = estimated(4, lambda arms: list(best_of_k_credit([rewards[arm] for arm in arms], k)))
    assert found == pytest.approx(slope(k, lambda arms: max(rewards[arm] for arm in arms)), abs=1e-8)


@pytest.mark.parametrize("k", [2, 3])
def test_the_gradient_is_that_of_a_vote_of_k(k: int) -> None:
    def credit(arms: Sequence[int]) -> list[float]:
        return list(majority_credit([ANSWERS[arm] for arm in arms], [SOLVED[arm] for arm in arms], k))

    found = estimated(4, credit)
    assert found == pytest.approx(slope(k, share_right), abs=1e-8)
