"""A term that keeps the policy near a reference."""

from __future__ import annotations

import torch
from torch import Tensor

from training.objectives.base import ObjectiveInputs


def reference_kl(inputs: ObjectiveInputs, counts: Tensor, ratio_cap: float) -> Tensor:
    """Return a term (0-d) with the expected gradient of the sequences' KL(policy | reference).

    It is sum_t (log-ratio to go, detached) · log pi(y_t), times the sequence's capped importance ratio; per-token k1
    and k3 have other gradients (arXiv 2506.09477). It is exact only with equal weights and no dropped groups.

    Args:
        counts: [tokens] bool.

    Raises:
        ValueError: the reference's log-probabilities are missing.
    """
    if inputs.reference_logprobs is None:
        raise ValueError("a KL term (kl_coef > 0) needs the reference policy's log-probabilities")
    excess = torch.where(counts, inputs.logprobs - inputs.reference_logprobs, 0.0)
    log_ratio = torch.where(counts, inputs.logprobs.detach() - inputs.generator_logprobs, 0.0)
    importance = per_sequence(log_ratio, inputs).exp().clamp(max=ratio_cap)
    # one weight per sequence: that of its counted tokens
    own = inputs.token_weights.to(importance.dtype)
    to_go = _to_go(excess.detach(), inputs)
    logprobs = torch.where(counts, inputs.logprobs, 0.0)
    weight = torch.where(counts, own[inputs.sequence_index], 0.0)
    return (weight * importance[inputs.sequence_index] * to_go * logprobs).sum()


def per_sequence(values: Tensor, inputs: ObjectiveInputs) -> Tensor:
    """Return [sequences] sums of [tokens] values."""
    sums = torch.zeros(len(inputs.advantages), dtype=values.dtype, device=values.device)
    return sums.index_add(0, inputs.sequence_index, values)


def _to_go(values: Tensor, inputs: ObjectiveInputs) -> Tensor:
    """Return [tokens] sums to each contiguous sequence's end."""
    exact = values.to(torch.float64)  # sums run over the whole micro-batch
    before = exact.cumsum(0) - exact
    starts = torch.ones_like(inputs.sequence_index, dtype=torch.bool)
    starts[1:] = inputs.sequence_index[1:] != inputs.sequence_index[:-1]
    begin = before[starts][starts.cumsum(0) - 1]
    return (per_sequence(exact, inputs)[inputs.sequence_index] - (before - begin)).to(values.dtype)
