"""Credit by comparison within a group: rewards centred on the group's mean, groups without diversity dropped.

Shared by objectives that weigh a rollout by how much better it was than its group's other rollouts; what a token
weighs in the minibatch's loss is here too, because it is made at the same moment.

Not here: how rewards are centred and scaled (`training.objectives.advantages`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from training.config import ObjectiveSettings
from training.objectives.advantages import Diversity, Normalisation, advantages, filter_group
from training.objectives.base import CreditInputs, GroupCredit
from training.rewards import Reward
from training.rollouts.rollout_scheduler import GroupDecision

LossAggregation = Literal["group", "batch", "sequence"]


class GroupCreditSettings(ObjectiveSettings):
    """Which groups teach, and how far."""

    loss_aggregation: LossAggregation = Field(
        "group",
        description="`group`: token sum over the group's tokens, then the mean over groups, as printed in the paper; "
        "`batch`: token sum over the minibatch's tokens; `sequence`: mean over a sequence's tokens, then sequences.",
    )
    advantage_normalisation: Normalisation = Field(
        "minibatch",
        description="What the group-centred advantages are divided by: their deviation over the minibatch, as in the "
        "paper, over their group, or nothing.",
    )
    std_floor: float = Field(1e-6, gt=0, description="A deviation is taken as at least this. Not in the paper.")
    group_filter: Diversity = Field(
        "reward",
        description="A group is dropped where all its total rewards are equal, or (`correctness`) where all its "
        "rollouts are correct or none is. The paper's formula says the first, its prose the second. `none`: no group "
        "is, for ablation.",
    )


def decide_group(rewards: Sequence[Reward], settings: GroupCreditSettings) -> GroupDecision:
    """Return whether a group is trained on; see `filter_group`."""
    return filter_group(rewards, settings.group_filter)


def group_credit(sequences: CreditInputs, settings: GroupCreditSettings) -> GroupCredit:
    """Return the minibatch's normalised advantages and token weights."""
    totals = torch.tensor([reward.total for reward in sequences.rewards], dtype=torch.float64)
    gains = advantages(
        totals, sequences.groups, normalisation=settings.advantage_normalisation, std_floor=settings.std_floor
    )
    return GroupCredit(gains, token_weights(sequences.lengths, sequences.groups, settings.loss_aggregation))


def token_weights(lengths: Tensor, groups: Tensor, scale: LossAggregation) -> Tensor:
    """Return the weight of each of a sequence's tokens in a whole minibatch's loss; over all tokens they sum to 1.

    ``group``: 1 / (tokens of the group · groups), as printed; ``batch``: 1 / tokens of the minibatch;
    ``sequence``: 1 / (tokens of the sequence · sequences).

    Args:
        lengths: [sequences] trained tokens of each sequence of the minibatch, over all ranks.
        groups: [sequences] a number per group.
        scale: which of the three.

    Returns:
        [sequences], float64; 0 for a sequence without tokens.
    """
    tokens = lengths.to(torch.float64)
    if scale == "batch":
        per_token = (1 / tokens.sum()).expand(len(tokens))
    elif scale == "sequence":
        per_token = 1 / (tokens * (tokens > 0).sum())
    else:
        _, index = torch.unique(groups, return_inverse=True)
        sums = torch.zeros(int(index.max()) + 1, dtype=torch.float64, device=tokens.device)
        sums.index_add_(0, index, tokens)
        per_token = (1 / (sums * (sums > 0).sum()))[index]
    return torch.where(tokens > 0, per_token, 0.0)
