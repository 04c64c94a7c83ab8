"""On-policy distillation: per-token reverse KL to a frozen teacher on the student's own rollouts.

    L = sum_i sum_t weight_i · w_t · (log pi(y_t) - log T(y_t)) · log pi(y_t)        all but the last factor detached
    w_t = min( pi(y_t) / mu(y_t), RATIO_CAP ), with mu the generator's probability

For y_t ~ pi its gradient is that of KL(pi | T) at this prefix (MiniLLM, arXiv 2306.08543; GKD, 2306.13649). With
`attempts`, T is the run's first model, shown a correct attempt (OPSD, arXiv 2601.18734).

Tokens without a teacher's score count in the denominators. With `unsolved`, groups without a correct rollout learn from
the teacher alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from training.config import ObjectiveSettings
from training.objectives.base import CreditInputs, GroupCredit, ObjectiveInputs, ObjectiveNeeds, Statistic
from training.objectives.credit import (
    NONE_CORRECT,
    filter_group,
    group_credit,
    group_means,
    group_weights,
    token_weights,
)
from training.objectives.objective import Objective
from training.objectives.set_credit import SetCreditSettings, set_decision
from training.objectives.step_statistics import counted, mean_of
from training.rewards import Reward
from training.rollouts.rollout_scheduler import GroupDecision

RATIO_CAP = 5.0
"""Max importance weight of a token, as in `aipo`."""


class DistilSettings(ObjectiveSettings):
    """Towards a teacher, on the student's own rollouts."""

    kind: Literal["distil"] = Field("distil", description="`distil`: distillation from a teacher.")
    teacher: Literal["model", "attempts"] = Field(
        "model",
        description="`model`: the recipe's `teacher`; `attempts`: the first model, shown a correct stored attempt.",
    )


class TaughtSettings(SetCreditSettings):
    """Credit within groups, and a teacher for groups without a correct rollout."""

    unsolved: Literal["drop", "model", "attempts"] = Field(
        "drop",
        description="Groups without a correct rollout: dropped, or distilled as by `distil.teacher`.",
    )


def distil_decision(rewards: Sequence[Reward], _: DistilSettings) -> GroupDecision:
    """Train on groups with a judged rollout."""
    return filter_group(rewards, "none", 1)


def distil_credit(sequences: CreditInputs, _: DistilSettings) -> GroupCredit:
    """Return advantages of 0, token weights that sum to 1, and all as taught."""
    weights = token_weights(sequences.lengths, sequences.groups, "batch")
    return GroupCredit(torch.zeros_like(weights), weights, torch.ones(len(weights), dtype=torch.bool))


def teacher_term(inputs: ObjectiveInputs) -> tuple[Tensor, dict[str, Statistic]]:
    """Return a term (0-d) with the gradient of KL(policy | teacher) at each prefix, and statistics."""
    counts, index = counted(inputs), inputs.sequence_index
    scores = inputs.teacher_logprobs
    if scores is None:
        scores = torch.full_like(inputs.generator_logprobs, math.nan)
    known = counts & ~scores.isnan()
    policy = inputs.logprobs.detach()
    excess = torch.where(known, policy - scores, 0.0)
    ratio = torch.where(known, policy - inputs.generator_logprobs, 0.0).clamp(max=math.log(RATIO_CAP)).exp()
    weight = inputs.token_weights.to(ratio.dtype)[index]
    term = (weight * ratio * excess * torch.where(known, inputs.logprobs, 0.0)).sum()
    return term, {"teacher_kl": mean_of(ratio * excess, known), "taught_share": mean_of(known, counts)}


def distil_loss(inputs: ObjectiveInputs, _: DistilSettings) -> tuple[Tensor, dict[str, Statistic]]:
    """Return `teacher_term`."""
    return teacher_term(inputs)


def taught_decision(rewards: Sequence[Reward], settings: TaughtSettings) -> GroupDecision:
    """Train as by credit, with `unsolved` also on groups without a correct rollout."""
    decision = set_decision(rewards, settings)
    is_taught = settings.unsolved != "drop" and decision.drop_reason == NONE_CORRECT
    return replace(decision, drop_reason=None) if is_taught else decision


def taught_credit(sequences: CreditInputs, settings: TaughtSettings) -> GroupCredit:
    """Return `group_credit`, which ignores taught groups; their advantages are 0."""
    if settings.unsolved == "drop":
        return group_credit(sequences, settings)
    correct = torch.tensor([float(reward.correct) for reward in sequences.rewards], dtype=torch.float64)
    taught = group_means(correct, sequences.groups) == 0
    gains, solved = torch.zeros_like(correct), (~taught).nonzero().flatten()
    if len(solved):
        gains[solved] = group_credit(sequences.only(solved), settings).advantages
    return GroupCredit(gains, group_weights(sequences, settings), taught)


DISTIL = Objective(
    DistilSettings,
    distil_loss,
    distil_credit,
    distil_decision,
    lambda settings: ObjectiveNeeds(teacher=settings.teacher),
)
