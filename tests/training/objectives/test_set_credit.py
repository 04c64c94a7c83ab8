"""Credit for what k rollouts are worth together: by hand, and enumerated against finite differences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

from training.objectives.set_credit import best_of_k_credit, majority_credit

ARMS = 5
LOGITS = torch.tensor([0.3, -0.4, 0.8, 0.1, -1.0], dtype=torch.float64)
BINARY = [0.0, 1.0, 0.0, 0.0, 1.0]
MANY = [0.0, 0.1, 0.25, 1.0, 1.1]
ANSWERS = ["7", "a", "a", None, "8"]
RIGHT = [True, False, False, False, True]


def share_right(arms: Sequence[int]) -> float:
    """Count a vote by hand."""
    votes: dict[str, int] = {}
    for arm in arms:
        answer = "right" if RIGHT[arm] else ANSWERS[arm]
        if answer is not None:
            votes[answer] = votes.get(answer, 0) + 1
    most = max(votes.values(), default=0)
    winners = [answer for answer, count in votes.items() if count == most]
    return 1 / len(winners) if "right" in winners else 0.0


def expected(logits: torch.Tensor, k: int, worth: Callable[[Sequence[int]], float]) -> float:
    """What k independent draws are worth."""
    chances: list[float] = logits.softmax(-1).tolist()
    draws = itertools.product(range(ARMS), repeat=k)
    return sum((math.prod(chances[arm] for arm in arms) * worth(arms) for arms in draws), 0.0)


def finite_differences(k: int, worth: Callable[[Sequence[int]], float]) -> list[float]:
    step, slopes = 1e-5, []
    for place in range(ARMS):
        move = torch.zeros(ARMS, dtype=torch.float64)
        move[place] = step
        slopes.append((expected(LOGITS + move, k, worth) - expected(LOGITS - move, k, worth)) / (2 * step))
    return slopes


def estimated(n: int, credit: Callable[[Sequence[int]], Sequence[float]]) -> list[float]:
    """Expectation, over all groups of n, of the mean of gain times the score."""
    chances = LOGITS.softmax(-1).numpy()
    scores = np.eye(ARMS) - chances  # row: the gradient of an arm's log-probability
    total = np.zeros(ARMS)
    for arms in itertools.product(range(ARMS), repeat=n):
        gains = np.asarray(credit(arms))
        total += math.prod(chances[arm] for arm in arms) * (gains[:, None] * scores[list(arms)]).mean(0)
    return list(total)


@pytest.mark.parametrize(("rewards", "n", "k"), [(BINARY, 4, 3), (MANY, 4, 2), (MANY, 3, 1)])
def test_the_gradient_is_that_of_the_best_of_k(rewards: list[float], n: int, k: int) -> None:
    found = estimated(n, lambda arms: list(best_of_k_credit([rewards[arm] for arm in arms], k)))
    wanted = finite_differences(k, lambda arms: max(rewards[arm] for arm in arms))
    assert found == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize(("n", "k"), [(4, 3), (4, 2), (3, 1)])
def test_the_gradient_is_that_of_a_vote_of_k(n: int, k: int) -> None:
    found = estimated(
        n, lambda arms: list(majority_credit([ANSWERS[arm] for arm in arms], [RIGHT[arm] for arm in arms], k))
    )
    assert found == pytest.approx(finite_differences(k, share_right), abs=1e-8)


def test_pass_at_k_is_the_closed_form() -> None:
    n = 16
    for k in range(2, n + 1):
        for correct in range(n + 1):
            gains = best_of_k_credit([1.0] * correct + [0.0] * (n - correct), k)
            closed = k * math.comb(n - correct, k - 1) / math.comb(n - 1, k - 1)
            assert gains.tolist() == pytest.approx([closed] * correct + [0.0] * (n - correct))


def test_a_vote_of_two_by_hand() -> None:
    """Right, wrong, silent; subsets of 2: {r, w} is worth 1/2, {r, s} 1, {w, s} 0."""
    gains = majority_credit(["1", "2", None], [True, False, False], 2)
    # right: (1/2 - 0) + (1 - 0); wrong: (1/2 - 1) + 0; silent: nothing; times n / C(n, k) = 1
    assert gains.tolist() == pytest.approx([1.5, -0.5, 0.0])


def test_a_solved_group_teaches_nothing() -> None:
    assert majority_credit(["1"] * 16, [True] * 16, 8).tolist() == [0.0] * 16
    assert best_of_k_credit([1.0] * 16, 8).tolist() == [0.0] * 16
    assert majority_credit(["1"] * 16, [False] * 16, 8).tolist() == [0.0] * 16
