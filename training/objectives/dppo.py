"""DPPO: the policy gradient in a trust region on probabilities (arXiv 2602.04879).

    L   = - sum_i sum_t weight_i · M_t · rho_t · A_i
    M_t = 0 if D_t > threshold and the gradient leads farther away (A_i log rho_t > 0), else 1

D_t compares policy pi and generator mu over the drawn token and all others:

    tv    |pi - mu|
    kl    mu log(mu / pi) + (1 - mu) log((1 - mu) / (1 - pi))
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from training.objectives.base import ObjectiveInputs, Statistic
from training.objectives.credit import Objective
from training.objectives.presets import GroupCreditSettings
from training.objectives.step_statistics import counted, mean_of

THRESHOLDS = {"tv": 0.15, "kl": 0.05}
"""Max distance, in probability and in nats."""


class DppoSettings(GroupCreditSettings):
    """A trust region on probability differences."""

    kind: Literal["dppo"] = "dppo"
    """`dppo`: a trust region on probabilities (arXiv 2602.04879)."""
    divergence: Literal["tv", "kl"] = "tv"
    """Distance: total variation, or KL(generator | policy)."""


def dppo_loss(inputs: ObjectiveInputs, settings: DppoSettings) -> tuple[Tensor, dict[str, Statistic]]:
    """Return a micro-batch's loss (0-d), masked share and mean distance."""
    counts = counted(inputs)
    log_ratio = inputs.log_ratio(counts)
    ratio = log_ratio.clamp(max=settings.variant.max_log_ratio).exp()
    advantage = inputs.per_token(inputs.advantages)
    weight = torch.where(counts, inputs.per_token(inputs.token_weights), 0.0)
    distance = binary_distance(inputs.logprobs.detach(), inputs.generator_logprobs, settings.divergence)
    masked = (distance > THRESHOLDS[settings.divergence]) & (advantage * log_ratio.detach() > 0)
    own = {"masked": mean_of(masked, counts), "distance": mean_of(torch.where(counts, distance, 0.0), counts)}
    return -(weight * torch.where(masked, 0.0, ratio * advantage)).sum(), own


def binary_distance(policy: Tensor, generator: Tensor, divergence: Literal["tv", "kl"]) -> Tensor:
    """Return [tokens] D_t of log-probabilities."""
    if divergence == "tv":
        return torch.abs(policy.exp() - generator.exp())
    tiny = torch.finfo(policy.dtype).tiny
    rest, rest_drawn = (torch.special.expm1(logprobs).neg().clamp(min=tiny) for logprobs in (policy, generator))
    distance: Tensor = generator.exp() * (generator - policy) + rest_drawn * (rest_drawn.log() - rest.log())
    return distance


DPPO = Objective(DppoSettings, dppo_loss)
