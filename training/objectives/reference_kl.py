"""Keep the policy near a reference."""

from __future__ import annotations

import torch
from torch import Tensor

from training.objectives.base import ObjectiveInputs

MAX_KL_RATIO = 10.0
"""Max importance ratio of a sequence."""


def reference_kl(inputs: ObjectiveInputs, counts: Tensor) -> Tensor:
    """Return a term (0-d) with the expected gradient of the sequences' KL(policy | reference).

    sum_t (log-ratio to go, detached) · log pi(y_t), times the sequence's capped importance ratio (arXiv 2506.09477);
    exact only with equal weights and no dropped groups.
    """
    if inputs.reference_logprobs is None:
        raise ValueError("a KL term (kl_coef > 0) needs the reference policy's log-probabilities")
    excess = torch.where(counts, inputs.logprobs - inputs.reference_logprobs, 0.0).detach().to(torch.float64)
    so_far = excess.cumsum(0) - excess  # since the micro-batch's first token, as `ends`
    ends = inputs.per_sequence(excess).cumsum(0)
    to_go = (ends[inputs.sequence_index] - so_far).to(inputs.logprobs.dtype)
    importance = inputs.per_sequence(inputs.log_ratio(counts).detach()).exp().clamp(max=MAX_KL_RATIO)
    weight = inputs.per_token(inputs.token_weights * importance)
    return (weight * to_go * torch.where(counts, inputs.logprobs, 0.0)).sum()
