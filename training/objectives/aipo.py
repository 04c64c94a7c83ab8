"""AIPO: the policy gradient with capped importance weights (LlamaRL, arXiv 2505.24034).

    w_t = min( pi(y_t) / mu(y_t), RATIO_CAP ), detached;      L = - sum_i sum_t weight_i · w_t · A_i · log pi(y_t)

mu is the generator's probability. With advantages divided by their group's deviation this is CISPO without a lower
bound (MiniMax-M1, arXiv 2506.13585).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from training.objectives.base import ObjectiveInputs, Statistic
from training.objectives.credit import Objective
from training.objectives.presets import AIPO_PRESETS, GroupCreditSettings
from training.objectives.step_statistics import counted, mean_of

RATIO_CAP = 5.0
"""Max importance weight; 2 to 10 in LlamaRL."""


class AipoSettings(GroupCreditSettings):
    """AIPO, and CISPO as a preset."""

    kind: Literal["aipo"] = "aipo"
    """`aipo`: capped importance weights."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = AIPO_PRESETS
    preset: Literal["llama_rl", "cispo"] = "llama_rl"
    """AIPO of LlamaRL (arXiv 2505.24034), or CISPO (arXiv 2506.13585)."""


def aipo_loss(inputs: ObjectiveInputs, _: AipoSettings) -> tuple[Tensor, dict[str, Statistic]]:
    """Return a micro-batch's loss (0-d) and statistics of its capped weights."""
    counts = counted(inputs)
    log_ratio = inputs.log_ratio(counts).detach()
    weights = log_ratio.clamp(max=math.log(RATIO_CAP)).exp()
    credit = inputs.per_token(inputs.token_weights * inputs.advantages)
    own = {
        "weight_capped": mean_of(log_ratio > math.log(RATIO_CAP), counts),
        "weight_mean": mean_of(weights, counts),
    }
    return -(weights * credit * torch.where(counts, inputs.logprobs, 0.0)).sum(), own


AIPO = Objective(AipoSettings, aipo_loss)
