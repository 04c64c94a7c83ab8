"""Advantages: which groups teach anything, and how far each rollout is from its group's mean (paper, section 2.1).

Invariants: rollouts that the verifier could not judge are no part of their group: not of its mean, its diversity or
its size. Centred advantages of a whole group sum to 0, so a minibatch of whole groups has mean 0 before it is
normalised. Means and deviations are over sequences, not tokens, and deviations are the population's.

Everything is computed in float64. Over ranks, add up `advantage_moments` and pass the sum to `advantages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from training.rewards import Reward
from training.rollouts.rollout_scheduler import GroupDecision

Normalisation = Literal["minibatch", "group", "mean", "none"]
Diversity = Literal["reward", "correctness", "none"]

STD_FLOOR = 1e-6
"""Smallest deviation by which advantages are divided, in reward."""

REWARD_TOLERANCE = 1e-9
"""Rewards that differ by no more are equal: their components are added in floating point."""

TOO_FEW_JUDGED = "too_few_judged"
ALL_CORRECT = "all_correct"
NONE_CORRECT = "none_correct"
SAME_REWARD = "same_reward"
NO_CREDIT = "no_credit"
"""Rewards differ, and yet no rollout of the group has an advantage."""


def filter_group(rewards: Sequence[Reward], diversity: Diversity, min_judged: int = 2) -> GroupDecision:
    """Return whether a group can be trained on.

    A group is dropped where fewer than ``min_judged`` rollouts could be judged (`TOO_FEW_JUDGED`), and where it has
    no diversity. With ``diversity="reward"`` that means: all total rewards are equal (`ALL_CORRECT`, `NONE_CORRECT`, or
    `SAME_REWARD` where that says nothing about correctness). With ``diversity="correctness"``: all rollouts are correct
    or none is, whatever their length and language earn. With ``diversity="none"`` only the first are dropped.
    """
    excluded = tuple(reward.excluded_by for reward in rewards)
    judged = [reward for reward in rewards if not reward.excluded]
    if len(judged) < min_judged:
        return GroupDecision(TOO_FEW_JUDGED, excluded)
    if diversity == "none":
        return GroupDecision(None, excluded)
    correct = sum(reward.correct for reward in judged)
    why = ALL_CORRECT if correct == len(judged) else NONE_CORRECT if correct == 0 else None
    totals = [reward.total for reward in judged]
    same = max(totals) - min(totals) <= REWARD_TOLERANCE
    if diversity == "correctness":
        return GroupDecision(why or (SAME_REWARD if same else None), excluded)
    return GroupDecision((why or SAME_REWARD) if same else None, excluded)


def centre_rewards(rewards: Tensor, groups: Tensor) -> Tensor:
    """Return rewards minus the mean of their group: A_i = r_i - mu.

    Args:
        rewards: [sequences] total rewards.
        groups: [sequences] a number per group, any integers.

    Returns:
        [sequences], float64.
    """
    totals = rewards.to(torch.float64)
    index, count = _index(groups)
    sums = torch.zeros(len(count), dtype=torch.float64, device=totals.device).index_add_(0, index, totals)
    return totals - (sums / count)[index]


def advantage_moments(centred: Tensor) -> Tensor:
    """Return count, sum and sum of squares of [sequences] advantages: [3], float64; those of ranks add up."""
    values = centred.to(torch.float64)
    count = torch.tensor(float(len(values)), dtype=torch.float64, device=values.device)
    return torch.stack([count, values.sum(), values.square().sum()])


def advantages(
    rewards: Tensor,
    groups: Tensor,
    *,
    normalisation: Normalisation = "minibatch",
    total: Tensor | None = None,
) -> Tensor:
    """Return normalised advantages of a minibatch (paper, section 2.1, "advantage normalization").

    ``minibatch``: (A - mean) / std over the minibatch's sequences; ``group``: A / std of its group; ``mean``: A / mean
    reward of its group (MaxRL, arXiv 2602.02710); ``none``: A. With rewards 0 and 1, n rollouts and the mean over them,
    ``mean`` has as its expected gradient that of -sum over k = 1 ... n-1 of (1 - p)^k / k, which goes to log p.

    Args:
        rewards: [sequences] total rewards, no excluded rollout among them.
        groups: [sequences] a number per group.
        normalisation: by what the centred rewards are divided.
        total: [3] `advantage_moments` of the centred rewards added up over all ranks; those of ``rewards`` where None.

    Returns:
        [sequences], float64.
    """
    centred = centre_rewards(rewards, groups)
    if normalisation == "none":
        return centred
    if normalisation == "group":
        index, count = _index(groups)
        squares = torch.zeros(len(count), dtype=torch.float64, device=centred.device)
        deviation = (squares.index_add_(0, index, centred.square()) / count).sqrt()
        return centred / deviation.clamp(min=STD_FLOOR)[index]
    if normalisation == "mean":
        return centred / (rewards.to(torch.float64) - centred).clamp(min=STD_FLOOR)
    count, first, second = (advantage_moments(centred) if total is None else total).unbind()
    mean = first / count
    deviation = (second / count - mean.square()).clamp(min=0).sqrt()
    return (centred - mean) / deviation.clamp(min=STD_FLOOR)


def scale_gains(gains: Tensor, groups: Tensor, normalisation: Normalisation) -> Tensor:
    """Return [sequences] float64 gains divided by their deviation over the minibatch or their group, or as they are.

    Nothing is subtracted: they have their baseline already, and centring them again is biased.
    """
    if normalisation == "minibatch":
        deviation = gains.std(correction=0)
        return gains / deviation.clamp(min=STD_FLOOR)
    if normalisation == "group":
        index, count = _index(groups)
        sums = torch.zeros(2, len(count), dtype=torch.float64, device=gains.device)
        mean, square = (sums.index_add_(1, index, torch.stack([gains, gains.square()])) / count).unbind()
        deviation = (square - mean.square()).clamp(min=0).sqrt()
        return gains / deviation.clamp(min=STD_FLOOR)[index]
    return gains


def _index(groups: Tensor) -> tuple[Tensor, Tensor]:
    """Return [sequences] the position of each sequence's group, and [groups] each group's size."""
    _, index, count = torch.unique(groups, return_inverse=True, return_counts=True)
    return index, count.to(torch.float64)
