"""GRPO: the token-level policy gradient with importance ratios and clip-higher (paper, section 2.1).

    J = E[ 1/sum_i |o_i| · sum_i sum_t min( rho A, clip(rho, 1 - eps_low, 1 + eps_high) A ) ]

rho is the ratio to the generator's probability. If A < 0, the gradient is 0 beyond e^`max_log_ratio`, unlike the
paper's, which has no bound.

Invariants: a sequence must be whole within one micro-batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from training.objectives.base import CreditInputs, GroupCredit, ObjectiveInputs, ObjectiveNeeds, Statistic
from training.objectives.credit import (
    NONE_CORRECT,
    GroupCreditSettings,
    decide_group,
    group_credit,
    group_means,
    group_weights,
)
from training.objectives.distil import teacher_term
from training.objectives.objective import Objective
from training.objectives.presets import GRPO_PRESETS, Normalisation
from training.objectives.reference_kl import per_sequence, reference_kl
from training.objectives.set_credit import MAX_SUBSETS
from training.objectives.step_statistics import counted, mean_of
from training.rewards import Reward
from training.rollouts.rollout_scheduler import GroupDecision

MAX_KL_RATIO = 10.0
"""Largest importance ratio by which the KL term weighs a sequence."""


class GrpoSettings(GroupCreditSettings):
    """GRPO as in the paper's section 2.1, and what other papers change."""

    kind: Literal["grpo"] = Field("grpo", description="`grpo`: the paper's, the default.")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = GRPO_PRESETS
    preset: Literal["paper", "dr_grpo", "dapo", "gspo", "dual_clip", "maxrl", "gdpo"] = Field(
        "paper",
        description="Defaults of other settings (docs/explanation/objectives.md).",
    )
    eps_high: float = Field(
        0.28, gt=0, description="Ratios above 1 + `eps_high` are clipped. Paper: 0.26 to 0.28, 0.3 after a cold start."
    )
    advantage_normalisation: Normalisation = Field(
        "minibatch",
        description="Divisor of group-centred advantages: deviation over the minibatch (paper) or "
        "group, the group's mean reward, or each component's deviation.",
    )
    entropy_coef: float = Field(0.0, ge=0, description="Weight of an entropy bonus. Paper: none; 7e-4 in its ablation.")
    kl_coef: float = Field(0.0, ge=0, description="Weight of KL(policy | reference). Paper: none.")
    credit: Literal["reward", "pass_at_k", "majority"] = Field(
        "reward",
        description="`reward`: a rollout's reward minus its group's mean (paper); `pass_at_k`, "
        "`majority`: its contribution to the best reward, or the vote, of `k` (arXiv "
        "2503.19595, 2505.15201).",
    )
    k: int = Field(8, ge=1, description="Rollouts of `pass_at_k` and `majority`.")
    unsolved: Literal["drop", "model", "attempts"] = Field(
        "drop",
        description="Groups without a correct rollout: dropped, or distilled as by `distil.teacher`.",
    )

    @property
    def set_credit(self) -> tuple[Literal["pass_at_k", "majority"], int] | None:
        """Return `credit` and `k`; None for `reward`."""
        return None if self.credit == "reward" else (self.credit, self.k)

    @model_validator(mode="after")
    def _has_meaning(self) -> Self:
        if (name := self.advantage_normalisation) in ("mean", "components") and self.credit != "reward":
            raise ValueError(f"advantage_normalisation = {name} has no meaning with credit = {self.credit}; change one")
        return self

    def unsuited(self, group_size: int, /) -> str | None:
        """Return why groups of this size do not suit the credit."""
        if self.credit == "reward":
            return None
        if self.k > group_size:
            return f"objective.k = {self.k} is more than collector.group_size = {group_size}; lower k or raise it"
        if self.credit == "majority" and (subsets := math.comb(group_size, self.k)) > MAX_SUBSETS:
            return (
                f"objective.credit = majority goes over {subsets} subsets of k = {self.k} of collector.group_size = "
                f"{group_size} rollouts, more than {MAX_SUBSETS}; lower one of them"
            )
        return None


def grpo_decision(rewards: Sequence[Reward], settings: GrpoSettings) -> GroupDecision:
    """Return whether a group is trained on, with `unsolved` also if none is correct."""
    decision = decide_group(rewards, settings)
    is_taught = settings.unsolved != "drop" and decision.drop_reason == NONE_CORRECT
    return replace(decision, drop_reason=None) if is_taught else decision


def grpo_credit(sequences: CreditInputs, settings: GrpoSettings) -> GroupCredit:
    """Return `group_credit`; taught groups have advantages of 0 and do not affect the others."""
    if settings.unsolved == "drop":
        return group_credit(sequences, settings)
    correct = torch.tensor([float(reward.correct) for reward in sequences.rewards], dtype=torch.float64)
    taught = group_means(correct, sequences.groups) == 0
    gains, solved = torch.zeros_like(correct), (~taught).nonzero().flatten()
    if len(solved):
        gains[solved] = group_credit(sequences.only(solved), settings).advantages
    return GroupCredit(gains, group_weights(sequences, settings), taught)


def grpo_loss(inputs: ObjectiveInputs, settings: GrpoSettings) -> tuple[Tensor, dict[str, Statistic]]:
    """Return the loss of one micro-batch (0-d), and its clipped and clamped shares.

    Raises:
        ValueError: a term is switched on without its input.
    """
    counts, variant = counted(inputs), settings.variant
    # log-probabilities of tokens that do not count may be anything, infinities too
    log_ratio = torch.where(counts, inputs.logprobs - inputs.generator_logprobs, 0.0)
    if variant.ratio_level == "sequence":
        log_ratio = _sequence_means(log_ratio, counts, inputs)
    ratio = log_ratio.clamp(max=variant.max_log_ratio).exp()
    advantage = inputs.advantages.to(ratio.dtype)[inputs.sequence_index]
    weight = torch.where(counts, inputs.token_weights.to(ratio.dtype)[inputs.sequence_index], 0.0)
    low, high = 1 - variant.eps_low, 1 + settings.eps_high
    loss = -(weight * torch.minimum(ratio * advantage, ratio.clamp(low, high) * advantage)).sum()
    if settings.entropy_coef:
        if inputs.entropy is None:
            raise ValueError("entropy_coef > 0 needs the tokens' entropy")
        loss = loss - settings.entropy_coef * (weight * inputs.entropy).sum()
    if settings.kl_coef:
        loss = loss + settings.kl_coef * reference_kl(inputs, counts, MAX_KL_RATIO)
    taught: dict[str, Statistic] = {}
    if settings.unsolved != "drop":
        term, taught = teacher_term(inputs)
        loss = loss + term
    shares = {
        **taught,
        "ratio_clamped": mean_of(log_ratio > variant.max_log_ratio, counts),
        "clip_low": mean_of((advantage < 0) & (ratio < low), counts),
        "clip_high": mean_of((advantage > 0) & (ratio > high), counts),
    }
    return loss, shares


def grpo_needs(settings: GrpoSettings) -> ObjectiveNeeds:
    """Return what the terms that are switched on need."""
    return ObjectiveNeeds(
        bool(settings.entropy_coef),
        bool(settings.kl_coef),
        teacher=None if settings.unsolved == "drop" else settings.unsolved,
    )


def _sequence_means(values: Tensor, counts: Tensor, inputs: ObjectiveInputs) -> Tensor:
    """Return [tokens] the mean of their sequence's counted values."""
    means = per_sequence(values, inputs) / per_sequence(counts.to(values.dtype), inputs).clamp(min=1)
    return means[inputs.sequence_index]


GRPO = Objective(GrpoSettings, grpo_loss, grpo_credit, grpo_decision, grpo_needs)
