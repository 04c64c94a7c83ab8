"""A teacher's term for objectives: per-token reverse KL (`training.objectives.distil`).

With `unsolved`, groups without a correct rollout learn from the teacher alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from training.objectives.base import CreditInputs, GroupCredit, ObjectiveInputs, Statistic
from training.objectives.credit import (
    NONE_CORRECT,
    SetCreditSettings,
    decide_group,
    group_credit,
    group_means,
    group_weights,
)
from training.objectives.step_statistics import counted, mean_of
from training.rewards import Reward
from training.rollouts.rollout_scheduler import GroupDecision

RATIO_CAP = 5.0
"""Largest importance weight of a token, as in `aipo`."""


class TaughtSettings(SetCreditSettings):
    """Credit within groups, and a teacher for groups without a correct rollout."""

    unsolved: Literal["drop", "model", "attempts"] = Field(
        "drop",
        description="Groups without a correct rollout: dropped, or distilled as by `distil.teacher`.",
    )


def taught_decision(rewards: Sequence[Reward], settings: TaughtSettings) -> GroupDecision:
    """Return whether a group is trained on, with `unsolved` also if none is correct."""
    decision = decide_group(rewards, settings)
    is_taught = settings.unsolved != "drop" and decision.drop_reason == NONE_CORRECT
    return replace(decision, drop_reason=None) if is_taught else decision


def taught_credit(sequences: CreditInputs, settings: TaughtSettings) -> GroupCredit:
    """Return `group_credit`; taught groups have advantages of 0 and do not affect the others."""
    if settings.unsolved == "drop":
        return group_credit(sequences, settings)
    correct = torch.tensor([float(reward.correct) for reward in sequences.rewards], dtype=torch.float64)
    taught = group_means(correct, sequences.groups) == 0
    rest = (~taught).nonzero().flatten()
    gains = torch.zeros_like(correct)
    if len(rest):
        places = rest.tolist()
        rewards = [sequences.rewards[place] for place in places]
        answers = [sequences.answers[place] for place in places] if sequences.answers else ()
        truncated = [sequences.truncated[place] for place in places] if sequences.truncated else ()
        solved = replace(
            sequences,
            rewards=rewards,
            lengths=sequences.lengths[rest],
            groups=sequences.groups[rest],
            answers=answers,
            truncated=truncated,
        )
        gains[rest] = group_credit(solved, settings).advantages
    return GroupCredit(gains, group_weights(sequences, settings), taught)


def teacher_term(inputs: ObjectiveInputs) -> tuple[Tensor, dict[str, Statistic]]:
    """Return a term (0-d) with the gradient of KL(policy | teacher) at each prefix, and its statistics.

    ``teacher_kl`` estimates that KL; ``taught_share`` is the share of tokens with a teacher's score.
    """
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
