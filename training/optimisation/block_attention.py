"""Compute causal attention with sliding windows, sinks or soft-capping exactly, on any device, in blocks of queries."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

_SCORES, _FEWEST = 2**24, 16
"""Scores that exist at once, 64 MiB in fp32, and the fewest queries of a block."""


@dataclass(frozen=True, slots=True)
class AttentionRule:
    """How a layer attends.

    Attributes:
        scaling: 1 / sqrt(head) if None.
        window: max tokens that a token attends to, itself included.
        sinks: [heads] scores without a key (gpt-oss).
        softcap: scores become cap tanh(score / cap) (Gemma 2).
    """

    scaling: float | None = None
    window: int | None = None
    sinks: Tensor | None = None
    softcap: float | None = None

    def is_plain(self, length: int) -> bool:
        """Return whether attention within this length is plain causal attention."""
        return self.sinks is None and self.softcap is None and (self.window is None or self.window >= length)


def block_attention(query: Tensor, key: Tensor, value: Tensor, rule: AttentionRule) -> Tensor:
    """Return [sequences, heads, tokens, head].

    Args:
        query: of the same shape; ``key`` and ``value`` may have fewer heads, a divisor of the query's.
    """
    sequences, heads, length, _ = query.shape
    window = length if rule.window is None else min(rule.window, length)
    rows = min(max(_SCORES // (sequences * heads * window), _FEWEST), length)
    outputs = []
    for begin in range(0, length, rows):
        end, first = min(begin + rows, length), max(begin - window + 1, 0)
        block = (query[:, :, begin:end], key[:, :, first:end], value[:, :, first:end], rule.sinks)
        if torch.is_grad_enabled() and length > rows:
            outputs.append(checkpoint(_block, *block, rule, begin - first, use_reentrant=False))
        else:
            outputs.append(_block(*block, rule, begin - first))
    return torch.cat(outputs, 2)


def _block(query: Tensor, key: Tensor, value: Tensor, sinks: Tensor | None, rule: AttentionRule, offset: int) -> Tensor:
    """Return the output of some queries, the first at key ``offset``."""
    groups = query.shape[1] // key.shape[1]
    key, value = (part.repeat_interleave(groups, 1) for part in (key, value))
    scaling = query.shape[-1] ** -0.5 if rule.scaling is None else rule.scaling
    scores = (query @ key.transpose(-1, -2)).float() * scaling
    if rule.softcap is not None:
        scores = torch.tanh(scores / rule.softcap) * rule.softcap
    own = torch.arange(query.shape[2], device=query.device)[:, None] + offset
    seen = torch.arange(key.shape[2], device=query.device) - own  # 0 is the token itself
    hidden = (seen > 0) if rule.window is None else (seen > 0) | (seen <= -rule.window)
    scores = scores.masked_fill(hidden, float("-inf"))
    if sinks is not None:
        column = sinks.float().view(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, column], -1)
    shares = scores.softmax(-1)[..., : key.shape[2]]
    return shares.to(value.dtype) @ value
