"""The paper's objective (section 2.1): token-level policy gradient with importance ratios and clip-higher.

    J = E[ 1/sum_i |o_i| · sum_i sum_t min( rho A, clip(rho, 1 - eps_low, 1 + eps_high) A ) ]

rho is the ratio to the probability under which the *generator* sampled the token, whatever version of the weights that
was. KL and entropy terms exist for ablations and are off, and so are corrections of what generator and trainer compute
differently (`training.objectives.importance`).

For A < 0 the printed objective has no bound: its gradient grows as rho. With `max_log_ratio` = m it is at most e^m
times that at rho = 1, and 0 beyond: the dual clip at e^m. At 10, where prime-rl has it too (verl: 20), one token weighs
as much as some 20,000 ordinary ones, a small batch, and no more.

Invariants: those of `training.objectives.base`. A sequence must lie whole within one micro-batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from training.objectives.base import Objective, ObjectiveInputs, ObjectiveNeeds, Statistic
from training.objectives.credit import GroupCreditSettings, decide_group, group_credit
from training.objectives.importance import Correction, importance_ratios, needs_old_logprobs
from training.objectives.presets import GRPO_PRESETS
from training.objectives.reference_kl import KLForm, per_sequence, reference_kl
from training.objectives.step_statistics import counted, mean_of

MAX_KL_RATIO = 10.0
"""Largest importance ratio by which the KL term weighs a sequence. Not in the paper."""


class GrpoSettings(GroupCreditSettings):
    """GRPO as in the paper's section 2.1; each part is a switch."""

    kind: Literal["grpo"] = Field("grpo", description="`grpo_loss`: the paper's objective, and the default.")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = GRPO_PRESETS
    preset: Literal["dr_grpo", "dapo", "gspo", "dual_clip", "maxrl"] | None = Field(
        None,
        description="Another paper's settings (`training/objectives/presets.py`), for all keys not named here.",
    )
    ratio_level: Literal["token", "sequence"] = Field(
        "token",
        description="`token`: each token's own ratio; `sequence`: for all tokens of a sequence the geometric mean of "
        "theirs, clipped together (GSPO, arXiv 2507.18071). Not in the paper.",
    )
    eps_low: float = Field(0.2, gt=0, lt=1, description="Ratios below 1 - eps_low are clipped. Not in the paper.")
    eps_high: float = Field(
        0.28, gt=0, description="Ratios above 1 + eps_high are clipped. 0.26 to 0.28 in the paper, 0.3 after an SFT."
    )
    max_log_ratio: float = Field(
        10.0,
        gt=0,
        le=60,
        description="Log-ratios are clamped to this before `exp`; where A < 0, tokens beyond it have no gradient. "
        "log 3 = 1.0986 is the dual clip (arXiv 1912.09729) at 3. Not in the paper: its objective has no bound there.",
    )
    correction: Correction = Field(
        "none",
        description="What is done if generator and trainer disagree on a token's probability. `truncate`: tokens weigh "
        "min(pi_old / mu, 2); `mask`: they weigh pi_old / mu, and nothing outside 0.5 to 5 (IcePop); `sequence_mask`: "
        "a sequence is left out if the geometric mean of its pi_old / mu is outside 0.5 to 2. Nothing in the paper.",
    )
    kl_coef: float = Field(
        0.0, ge=0, description="Weight of KL(policy | reference). 0 in the paper: no reference is kept."
    )
    reference: str | None = Field(
        None,
        description="Folder of the reference model, relative to the recipe's, or `embedded`; where absent, the model "
        "that the run starts from. Loaded only where `kl_coef` is not 0. Not in the paper.",
    )
    reference_ema: float | None = Field(
        None,
        ge=0,
        le=1,
        description="The reference follows the policy: after each step its weights are so much of themselves, "
        "the rest the policy's. .99 is about a hundred steps. Frozen where absent. The paper tried a reference that is "
        "a moving average, and printed no figure.",
    )
    kl_form: KLForm = Field(
        "reward",
        description="`reward`: log-ratio to go as a penalty on each token; `square`: half the square of the sequence's "
        "log-ratio. Both have the gradient of the sequence KL (arXiv 2506.09477).",
    )
    entropy_coef: float = Field(
        0.0, ge=0, description="Weight of the entropy bonus. 0 in the paper; 7e-4 in its ablation."
    )


def grpo_loss(inputs: ObjectiveInputs, settings: GrpoSettings) -> tuple[Tensor, dict[str, Statistic]]:
    """Return the loss of one micro-batch (to be minimised, 0-d) and the shares of its tokens that are clipped,
    clamped (``ratio_clamped``), truncated or masked.

    Raises:
        ValueError: a term is switched on without its input.
    """
    counts = counted(inputs)
    importance = importance_ratios(inputs, counts, settings.correction)
    log_ratio = importance.log_ratio
    if settings.ratio_level == "sequence":
        log_ratio = _sequence_means(log_ratio, counts, inputs)
    ratio = log_ratio.clamp(max=settings.max_log_ratio).exp()
    advantage = inputs.advantages.to(ratio.dtype)[inputs.sequence_index]
    weight = torch.where(counts, inputs.token_weights.to(ratio.dtype)[inputs.sequence_index], 0.0)
    low, high = 1 - settings.eps_low, 1 + settings.eps_high
    gain = torch.minimum(ratio * advantage, ratio.clamp(low, high) * advantage)
    loss = -((weight if importance.weights is None else weight * importance.weights) * gain).sum()
    if settings.entropy_coef:
        if inputs.entropy is None:
            raise ValueError("entropy_coef > 0 needs the tokens' entropy")
        loss = loss - settings.entropy_coef * (weight * inputs.entropy).sum()
    if settings.kl_coef:
        loss = loss + settings.kl_coef * reference_kl(inputs, counts, settings.kl_form, MAX_KL_RATIO)
    clipped = {
        **importance.statistics,
        "ratio_clamped": mean_of(log_ratio > settings.max_log_ratio, counts),
        "clip_low": mean_of((advantage < 0) & (ratio < low), counts),
        "clip_high": mean_of((advantage > 0) & (ratio > high), counts),
    }
    return loss, clipped


def grpo_needs(settings: GrpoSettings) -> ObjectiveNeeds:
    """Return what must be computed for the terms that are switched on."""
    return ObjectiveNeeds(
        bool(settings.entropy_coef),
        bool(settings.kl_coef),
        settings.reference,
        old_logprobs=needs_old_logprobs(settings.correction),
        reference_ema=settings.reference_ema,
    )


def _sequence_means(values: Tensor, counts: Tensor, inputs: ObjectiveInputs) -> Tensor:
    """Return [tokens] the mean of their sequence's counted values."""
    means = per_sequence(values, inputs) / per_sequence(counts.to(values.dtype), inputs).clamp(min=1)
    return means[inputs.sequence_index]


GRPO = Objective(GrpoSettings, decide_group, group_credit, grpo_loss, grpo_needs)
