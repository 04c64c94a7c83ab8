"""Credit of single rollouts for what several are worth together: the best of k, and a vote of k.

A group of n rollouts stands for all its subsets of k. A rollout gains, over the subsets that hold it, what the subset
is worth more than without it: the leave-one-out baseline, which keeps the gradient exact (arXiv 2503.19595,
2505.15201). Summed over i, gain_i · grad log pi(y_i) / n has as its expectation the gradient of what k rollouts are
worth; gains are n times the papers' so that k = 1 gives the reward itself.

Invariants: pure, float64. Gains must not be centred on their group's mean again: that is biased.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

MAX_SUBSETS = 20_000
"""Subsets of a group that a vote's credit goes over at most; 16 over 8 are 12,870."""

Numbers = NDArray[np.float64]


def best_of_k_credit(rewards: Sequence[float], k: int) -> Numbers:
    """Return [n] gains for the largest reward among k of the group's n rollouts; with rewards 0 and 1, for pass@k.

    With ranks ascending, g_(1) <= ... <= g_(n), and k >= 2:
    n · sum over m = k-1 ... j-1 of C(m-1, k-2) / C(n, k) · (g_(j) - g_(m)). k = 1: the rewards.

    Raises:
        ValueError: there are fewer than k rollouts.
    """
    values, n = np.asarray(rewards, dtype=np.float64), len(rewards)
    _require(n, k)
    if k == 1:
        return values
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    # share of the subsets that hold a given better rollout whose next best is the one of rank m
    shares = np.array([math.comb(m - 1, k - 2) / math.comb(n, k) for m in range(1, n + 1)])
    shares[: k - 2] = 0.0
    below = np.tril(ranked[:, None] - ranked[None, :], -1)
    gains = np.empty(n)
    gains[order] = n * (below @ shares)
    return gains


def majority_credit(answers: Sequence[str | None], right: Sequence[bool], k: int) -> Numbers:
    """Return [n] gains for the chance that a vote of k of the group's n rollouts is right, ties split evenly.

    Args:
        answers: each rollout's answer; those with equal ones vote together, and None does not vote.
        right: which are correct; all of these vote together, whatever they wrote.
        k: rollouts that vote.

    Raises:
        ValueError: there are fewer than k rollouts, or more than `MAX_SUBSETS` subsets.
    """
    n = len(answers)
    _require(n, k)
    if math.comb(n, k) > MAX_SUBSETS:
        raise ValueError(f"{math.comb(n, k)} subsets of {k} of {n} rollouts are too many for a vote's credit")
    members = _members(n, k)
    classes: dict[str, int] = {}
    numbers: list[int | None] = []
    for answer, correct in zip(answers, right, strict=True):
        wrong = None if answer is None else classes.setdefault(answer, len(classes) + 1)
        numbers.append(0 if correct else wrong)
    votes = np.zeros((n, len(classes) + 1), dtype=np.int64)
    for place, number in enumerate(numbers):
        if number is not None:
            votes[place, number] = 1
    counts = members @ votes
    whole = _right_share(counts)
    gains = np.zeros(n)
    for number in {one for one in numbers if one is not None}:
        others = counts.copy()
        others[:, number] -= 1
        difference = whole - _right_share(others)  # only read where the subset holds one of the class
        for place in (place for place, one in enumerate(numbers) if one == number):
            gains[place] = difference[members[:, place] == 1].sum()
    return gains * (n / math.comb(n, k))


def _right_share(counts: NDArray[np.int64]) -> Numbers:
    """Return [subsets] the chance that the vote is right, of [subsets, classes] votes; class 0 is the right one."""
    most = counts.max(axis=1)
    tied = (counts == most[:, None]).sum(axis=1)
    return np.where((counts[:, 0] == most) & (most > 0), 1.0 / tied, 0.0)


@cache
def _members(n: int, k: int) -> NDArray[np.int64]:
    """Return [subsets, n] which rollouts are in each subset of k, 0 or 1."""
    chosen = np.array(list(itertools.combinations(range(n), k)), dtype=np.int64)
    members = np.zeros((len(chosen), n), dtype=np.int64)
    np.put_along_axis(members, chosen, 1, axis=1)
    return members


def _require(n: int, k: int) -> None:
    if not 1 <= k <= n:
        raise ValueError(f"credit for {k} rollouts together needs at least so many in a group, not {n}")
