"""Maximum likelihood of correct rollouts: cold start and rejection-sampling fine-tuning (paper, section 5).

L = - 1 / T · sum_i sum_t log pi(y_i,t)        T: tokens of the minibatch
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from training.config import ObjectiveSettings
from training.objectives.base import CreditInputs, GroupCredit, ObjectiveInputs, ObjectiveNeeds, Statistic
from training.objectives.credit import Objective, token_weights
from training.objectives.step_statistics import counted, mean_of
from training.rewards import Reward
from training.rollouts.rollout_scheduler import GroupDecision

NOT_CORRECT = "not_correct"


class SftSettings(ObjectiveSettings):
    """Mean log-likelihood of the tokens of correct rollouts."""

    kind: Literal["sft"] = "sft"
    """`sft`: likelihood of correct rollouts."""


def sft_decision(rewards: Sequence[Reward], _: SftSettings) -> GroupDecision:
    """Keep correct rollouts."""
    reasons = tuple(reward.excluded_by or (None if reward.correct else NOT_CORRECT) for reward in rewards)
    return GroupDecision(None if None in reasons else "none_correct", reasons)


def sft_credit(sequences: CreditInputs, _: SftSettings) -> GroupCredit:
    """Return advantages of 1, and token weights that sum to 1."""
    weights = token_weights(sequences.lengths, sequences.groups, "batch")
    return GroupCredit(torch.ones(len(sequences.rewards), dtype=torch.float64), weights)


def sft_loss(inputs: ObjectiveInputs, _: SftSettings) -> tuple[Tensor, dict[str, Statistic]]:
    """Return a micro-batch's loss (0-d), and the mean -log pi (nats)."""
    counts = counted(inputs)
    surprise = torch.where(counts, -inputs.logprobs, 0.0)
    return (inputs.per_token(inputs.token_weights) * surprise).sum(), {"nll": mean_of(surprise, counts)}


SFT = Objective(SftSettings, sft_loss, sft_credit, sft_decision, lambda _: ObjectiveNeeds(generator_logprobs=False))
