"""GRPO: the token-level policy gradient with importance ratios and clip-higher (paper, section 2.1).

    J = E[ 1/sum_i |o_i| · sum_i sum_t min( rho A, clip(rho, 1 - eps_low, 1 + eps_high) A ) ]

rho is the ratio to the generator's probability. If A < 0, the gradient is 0 beyond e^`max_log_ratio`, unlike the
paper's. Unless `unsolved` is `drop`, groups without a correct rollout learn from a teacher (`distil`).
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
    REWARD_TOLERANCE,
    Objective,
    filter_group,
    group_credit,
    group_means,
)
from training.objectives.distil import distil_loss
from training.objectives.presets import GRPO_PRESETS, GroupCreditSettings, Normalisation
from training.objectives.reference_kl import reference_kl
from training.objectives.set_credit import MAX_SUBSETS, best_of_k_credit, set_gains
from training.objectives.step_statistics import counted, mean_of
from training.rewards import Reward
from training.rollouts.rollout_scheduler import GroupDecision


class GrpoSettings(GroupCreditSettings):
    """GRPO as in the paper's section 2.1, and what other papers change."""

    kind: Literal["grpo"] = "grpo"
    """`grpo`: the paper's, the default."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = GRPO_PRESETS
    credit: Literal["reward", "pass_at_k", "majority"] = "reward"
    """`reward`: a rollout's reward minus its group's mean (paper); `pass_at_k`, `majority`: its contribution to the
    best reward, or the vote, of `k` (arXiv 2503.19595, 2505.15201)."""
    k: int = Field(8, ge=1)
    """Size of the subsets of `pass_at_k` and `majority`."""
    unsolved: Literal["drop", "model", "attempts"] = "drop"
    """Groups without a correct rollout: dropped, or taught by `teacher` or stored attempts."""
    preset: Literal["paper", "dr_grpo", "dapo", "gspo", "dual_clip", "maxrl", "gdpo"] = "paper"
    """Defaults of other settings (docs/explanation/objectives.md)."""
    eps_high: float = Field(0.28, gt=0)
    """Ratios above 1 + `eps_high` are clipped. Paper: 0.26 to 0.28, 0.3 after a cold start."""
    advantage_normalisation: Normalisation = "minibatch"
    """Divisor of group-centred advantages: deviation over `minibatch` (paper) or `group`; the group's `mean` reward;
    deviation per `components`; or `none`."""
    entropy_coef: float = Field(0.0, ge=0)
    """Weight of an entropy bonus. Paper: none; 7e-4 in its ablation."""
    kl_coef: float = Field(0.0, ge=0)
    """Weight of KL(policy | reference). Paper: none."""

    @model_validator(mode="after")
    def _has_meaning(self) -> Self:
        if (name := self.advantage_normalisation) in ("mean", "components") and self.credit != "reward":
            raise ValueError(f"advantage_normalisation = {name} has no meaning with credit = {self.credit}; change one")
        return self

    def unsuited(self, group_size: int, /) -> str | None:
        """See `ObjectiveSettings.unsuited`."""
        if self.credit == "reward":
            return None
        if self.k > group_size:
            return f"objective.k = {self.k} is more than collector.group_size = {group_size}; lower k or raise the size"
        if self.credit == "majority" and (subsets := math.comb(group_size, self.k)) > MAX_SUBSETS:
            return (
                f"objective.credit = majority goes over {subsets} subsets of k = {self.k} of collector.group_size = "
                f"{group_size} rollouts, more than {MAX_SUBSETS}; lower one of them"
            )
        return None


def grpo_decision(rewards: Sequence[Reward], settings: GrpoSettings) -> GroupDecision:
    """Drop groups of equal rewards or without credit; `unsolved` may keep those without a correct rollout."""
    diversity = "correctness" if settings.credit == "majority" else settings.variant.group_filter
    decision = filter_group(rewards, diversity, 2 if settings.credit == "reward" else max(2, settings.k))
    reason = decision.drop_reason
    if reason is None and settings.credit == "pass_at_k":
        gains = best_of_k_credit([reward.total for reward in rewards if not reward.excluded], settings.k)
        reason = "no_credit" if abs(gains).max() <= REWARD_TOLERANCE else None
    if reason == NONE_CORRECT and settings.unsolved != "drop":
        reason = None
    return replace(decision, drop_reason=reason)


def grpo_credit(sequences: CreditInputs, settings: GrpoSettings) -> GroupCredit:
    """Return advantages by `credit`, 0 for groups with a teacher."""
    if settings.unsolved == "drop":
        gains = None if settings.credit == "reward" else set_gains(sequences, settings.credit, settings.k)
        return group_credit(sequences, settings, gains)
    correct = torch.tensor([float(reward.correct) for reward in sequences.rewards], dtype=torch.float64)
    taught = group_means(correct, sequences.groups) == 0
    advantages, solved = torch.zeros_like(correct), (~taught).nonzero().flatten()
    if len(solved):
        without_teacher = settings.model_copy(update={"unsolved": "drop"})
        advantages[solved] = grpo_credit(sequences.only(solved), without_teacher).advantages
    return GroupCredit(advantages, group_credit(sequences, settings).token_weights, taught)


def grpo_loss(inputs: ObjectiveInputs, settings: GrpoSettings) -> tuple[Tensor, dict[str, Statistic]]:
    """Return a micro-batch's loss (0-d), and its clipped and clamped shares."""
    counts, variant = counted(inputs), settings.variant
    log_ratio = inputs.log_ratio(counts)
    if variant.ratio_level == "sequence":
        tokens = inputs.per_sequence(counts.to(log_ratio.dtype)).clamp(min=1)
        log_ratio = inputs.per_token(inputs.per_sequence(log_ratio) / tokens)
    ratio = log_ratio.clamp(max=variant.max_log_ratio).exp()
    advantage = inputs.per_token(inputs.advantages)
    weight = torch.where(counts, inputs.per_token(inputs.token_weights), 0.0)
    low, high = 1 - variant.eps_low, 1 + settings.eps_high
    loss = -(weight * torch.minimum(ratio * advantage, ratio.clamp(low, high) * advantage)).sum()
    if settings.entropy_coef:
        if inputs.entropy is None:
            raise ValueError("entropy_coef > 0 needs the tokens' entropy")
        loss = loss - settings.entropy_coef * (weight * inputs.entropy).sum()
    if settings.kl_coef:
        loss = loss + settings.kl_coef * reference_kl(inputs, counts)
    of_teacher: dict[str, Statistic] = {}
    if settings.unsolved != "drop":
        term, of_teacher = distil_loss(inputs)
        loss = loss + term
    shares = {
        **of_teacher,
        "ratio_clamped": mean_of(log_ratio > variant.max_log_ratio, counts),
        "clip_low": mean_of((advantage < 0) & (ratio < low), counts),
        "clip_high": mean_of((advantage > 0) & (ratio > high), counts),
    }
    return loss, shares


GRPO = Objective(
    GrpoSettings,
    grpo_loss,
    grpo_credit,
    grpo_decision,
    lambda settings: ObjectiveNeeds(
        bool(settings.entropy_coef),
        bool(settings.kl_coef),
        teacher=None if settings.unsolved == "drop" else settings.unsolved,
    ),
)
