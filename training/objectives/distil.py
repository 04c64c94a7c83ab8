"""On-policy distillation: per-token reverse KL to a frozen teacher on the student's own rollouts.

    L = sum_i sum_t weight_i · w_t · (log pi(y_t) - log T(y_t)) · log pi(y_t)        all but the last factor detached
    w_t = min( pi(y_t) / mu(y_t), RATIO_CAP ), with mu the generator's probability

For y_t ~ pi its gradient is that of KL(pi | T) at this prefix (MiniLLM, arXiv 2306.08543; GKD, 2306.13649). With
`attempts`, T is the run's first model, shown a correct attempt (OPSD, arXiv 2601.18734).

Tokens without a score count in the denominators.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from training.config import ObjectiveSettings
from training.objectives.base import CreditInputs, GroupCredit, ObjectiveInputs, ObjectiveNeeds, Statistic
from training.objectives.credit import Objective, filter_group, token_weights
from training.objectives.step_statistics import counted, mean_of

RATIO_CAP = 5.0
"""Max importance weight of a token, as in `aipo`."""


class DistilSettings(ObjectiveSettings):
    """Towards a teacher, on the student's own rollouts."""

    kind: Literal["distil"] = "distil"
    """`distil`: distillation from a teacher."""
    teacher: Literal["model", "attempts"] = "model"
    """`model`: the recipe's `teacher`; `attempts`: the first model, shown a correct stored attempt."""


def distil_credit(sequences: CreditInputs, _: DistilSettings) -> GroupCredit:
    """Return advantages of 0, token weights that sum to 1, and all as taught."""
    weights = token_weights(sequences.lengths, sequences.groups, "batch")
    return GroupCredit(torch.zeros_like(weights), weights, torch.ones(len(weights), dtype=torch.bool))


def distil_loss(inputs: ObjectiveInputs, _: DistilSettings | None = None) -> tuple[Tensor, dict[str, Statistic]]:
    """Return a term (0-d) with the gradient of KL(policy | teacher) at each prefix, and statistics."""
    counts, scores, policy = counted(inputs), inputs.teacher_logprobs, inputs.logprobs.detach()
    if scores is None:
        scores = torch.full_like(policy, math.nan)
    known = counts & ~scores.isnan()
    excess = torch.where(known, policy - scores, 0.0)
    ratio = inputs.log_ratio(known).detach().clamp(max=math.log(RATIO_CAP)).exp()
    weight = inputs.per_token(inputs.token_weights)
    term = (weight * ratio * excess * torch.where(known, inputs.logprobs, 0.0)).sum()
    return term, {"teacher_kl": mean_of(ratio * excess, known), "taught_share": mean_of(known, counts)}


DISTIL = Objective(
    DistilSettings,
    distil_loss,
    distil_credit,
    lambda rewards, _: filter_group(rewards, "none", 1),
    lambda settings: ObjectiveNeeds(teacher=settings.teacher),
)
