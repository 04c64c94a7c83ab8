"""GRPO: the token-level policy gradient with importance ratios and clip-higher (paper, section 2.1).

    J = E[ 1/sum_i |o_i| · sum_i sum_t min( rho A, clip(rho, 1 - eps_low, 1 + eps_high) A ) ]

rho is the ratio to the generator's probability. If A < 0, the gradient is 0 beyond e^`max_log_ratio`; the paper's has
no bound.

Invariants: a sequence must be whole within one micro-batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from training.objectives.base import ObjectiveInputs, ObjectiveNeeds, Statistic
from training.objectives.distil import TaughtSettings, taught_credit, taught_decision, teacher_term
from training.objectives.objective import Objective
from training.objectives.presets import GRPO_PRESETS, Normalisation
from training.objectives.reference_kl import per_sequence, reference_kl
from training.objectives.step_statistics import counted, mean_of

MAX_KL_RATIO = 10.0
"""Max importance ratio in the KL term."""


class GrpoSettings(TaughtSettings):
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


def grpo_loss(inputs: ObjectiveInputs, settings: GrpoSettings) -> tuple[Tensor, dict[str, Statistic]]:
    """Return a micro-batch's loss (0-d), and its clipped and clamped shares.

    Raises:
        ValueError: a term lacks its input.
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
    """Return what the chosen terms need."""
    return ObjectiveNeeds(
        bool(settings.entropy_coef),
        bool(settings.kl_coef),
        teacher=None if settings.unsolved == "drop" else settings.unsolved,
    )


def _sequence_means(values: Tensor, counts: Tensor, inputs: ObjectiveInputs) -> Tensor:
    means = per_sequence(values, inputs) / per_sequence(counts.to(values.dtype), inputs).clamp(min=1)
    return means[inputs.sequence_index]


GRPO = Objective(GrpoSettings, grpo_loss, taught_credit, taught_decision, grpo_needs)
