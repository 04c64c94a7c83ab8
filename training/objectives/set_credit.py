"""Credit rollouts for the best of k, or a vote of k, in their group.

A gain sums a rollout's contribution to each subset of k (arXiv 2503.19595, 2505.15201). Gains are n times the papers',
so the mean of gain_i · grad log pi(y_i) estimates the gradient for k rollouts. Do not centre gains again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from training.objectives.base import CreditInputs

MAX_SUBSETS = 20_000
"""Max subsets of a group in a vote; 8 of 16 are 12,870."""


def set_gains(sequences: CreditInputs, credit: Literal["pass_at_k", "majority"], k: int) -> Tensor:
    """Return [sequences] float64 gains."""
    gains = torch.zeros(len(sequences.rewards), dtype=torch.float64)
    for number in torch.unique(sequences.groups).tolist():
        members = (sequences.groups == number).nonzero().flatten().tolist()
        rewards = [sequences.rewards[member] for member in members]
        if credit == "pass_at_k":
            own = best_of_k_credit([reward.total for reward in rewards], k)
        else:
            answers = [sequences.answers[member] for member in members]
            own = majority_credit(answers, [reward.correct for reward in rewards], k)
        gains[members] = torch.from_numpy(own)
    return gains


def best_of_k_credit(rewards: Sequence[float], k: int) -> NDArray[np.float64]:
    """Return [n] gains for the largest reward among k of n rollouts.

    With ascending ranks and k >= 2: n · sum over m = k-1 … j-1 of C(m-1, k-2) / C(n, k) · (g_(j) - g_(m)). For k = 1,
    gains are the rewards.
    """
    values, n = np.asarray(rewards, dtype=np.float64), len(rewards)
    if k == 1:
        return values
    order = np.argsort(values, kind="stable")
    ranked, gains = values[order], np.empty(n)
    shares = np.array([math.comb(m - 1, k - 2) / math.comb(n, k) if m >= k - 1 else 0.0 for m in range(1, n + 1)])
    gains[order] = n * (np.tril(ranked[:, None] - ranked[None, :], -1) @ shares)
    return gains


def majority_credit(answers: Sequence[str | None], right: Sequence[bool], k: int) -> NDArray[np.float64]:
    """Return [n] gains for the chance that a vote of k of n rollouts is right, ties split evenly.

    Equal answers, and all correct ones, vote together; None does not vote.
    """
    n = len(answers)
    labels = [
        True if correct else answer and " ".join(answer.split()) for answer, correct in zip(answers, right, strict=True)
    ]
    classes = [True, *dict.fromkeys(label for label in labels if isinstance(label, str))]
    votes = np.array([[label == name for name in classes] for label in labels], dtype=np.int64)
    members = _subsets(n, k)
    counts = members @ votes
    whole = _right_share(counts)
    gains = [(members[:, i] * (whole - _right_share(counts - votes[i]))).sum() for i in range(n)]
    return np.array(gains) * (n / math.comb(n, k))


def _right_share(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return [subsets] the chance that [subsets, classes] votes elect class 0."""
    max_votes = counts.max(axis=1)
    tied = (counts == max_votes[:, None]).sum(axis=1)
    return np.where((counts[:, 0] == max_votes) & (max_votes > 0), 1.0 / tied, 0.0)


@cache
def _subsets(n: int, k: int) -> NDArray[np.int64]:
    """Return [subsets, n] 0/1 members of each subset of k."""
    chosen = np.array(list(itertools.combinations(range(n), k)))
    members = np.zeros((len(chosen), n), dtype=np.int64)
    np.put_along_axis(members, chosen, 1, axis=1)
    return members
