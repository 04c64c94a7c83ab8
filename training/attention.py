"""Attention over packed sequences: causal, and never from one sequence into another.

`register` puts it beside the attentions that transformers knows, under `PACKED`. On a GPU in half precision it is
torch's variable-length flash attention; elsewhere each sequence has its own call of scaled dot-product attention. No
mask of tokens x tokens is ever made, and no work is done between sequences. Where sequences share a prompt, queries,
keys and values of its one copy are laid before each of its responses first: any attention of whole sequences will do.

Invariants: it reads the boundaries that the forward pass hands through (`boundaries_of`) and refuses to run without
them, so a model that is set to it cannot be run unpacked or on padded batches by mistake.

Not here: packing itself (`training.packing`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.varlen import varlen_attn

from curation.records import ConfigError
from training.packing import MicroBatch

PACKED = "goldilocks_packed"
"""Name for ``attn_implementation``."""


def register() -> str:
    """Make the attention known to transformers; returns its name."""
    from transformers import AttentionInterface

    AttentionInterface.register(PACKED, packed_attention)
    return PACKED


def boundaries_of(batch: MicroBatch) -> dict[str, Tensor | int | None]:
    """What a model's forward pass must hand to its attention; flash attention of transformers reads the same names."""
    return {
        "unrolled": batch.unrolled,
        "kept": batch.kept,
        "cu_seq_lens_q": batch.boundaries,
        "cu_seq_lens_k": batch.boundaries,
        "max_length_q": batch.longest,
        "max_length_k": batch.longest,
    }


def packed_attention(
    module: nn.Module,  # noqa: ARG001 - transformers passes it first
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    cu_seq_lens_q: Tensor | None = None,
    max_length_q: int | None = None,
    sliding_window: int | None = None,
    unrolled: Tensor | None = None,
    kept: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention as transformers calls it.

    Args:
        query: [1, heads, tokens, head]; ``key`` and ``value`` may have fewer heads, which divide those of the query.
        cu_seq_lens_q: [sequences + 1] int32, where sequences begin and end.
        max_length_q: tokens of the longest sequence.
        unrolled, kept: of a micro-batch with shared prompts, see `training.packing.MicroBatch`.

    Returns:
        [1, tokens, heads, head], and no weights.

    Raises:
        ValueError: boundaries are missing, or the batch is not packed.
        ConfigError: the model has a sliding window shorter than a sequence, or dropout.
    """
    if cu_seq_lens_q is None or max_length_q is None or query.shape[0] != 1 or query.shape[2] != key.shape[2]:
        raise ValueError(
            "packed attention needs one packed row and its boundaries; call the model through PackedPolicy"
        )
    if attention_mask is not None:
        raise ValueError("packed attention takes no mask; call the model through PackedPolicy")
    if sliding_window is not None and sliding_window < max_length_q:
        raise ConfigError(
            f"the model attends within a window of {sliding_window} tokens, which is not supported for sequences of "
            f"{max_length_q}; take a model without a sliding window, or shorter responses."
        )
    if dropout:
        raise ConfigError(f"the model's attention_dropout is {dropout}, which is not supported here; set it to 0.")
    # [tokens, heads, head], of whole sequences
    query, key, value = (whole[0].transpose(0, 1) for whole in (query, key, value))
    if unrolled is not None:
        query, key, value = (_chosen(whole, unrolled) for whole in (query, key, value))
    found = _whole_sequences(query, key, value, cu_seq_lens_q, max_length_q, scaling)
    return (found if kept is None else _chosen(found, kept))[None], None


def _chosen(whole: Tensor, places: Tensor) -> Tensor:
    """Tokens of [tokens, heads, head]; as rows, whose gradient is the quicker one on a CPU."""
    return whole.flatten(1).index_select(0, places).unflatten(1, whole.shape[1:])


def _whole_sequences(
    query: Tensor, key: Tensor, value: Tensor, boundaries: Tensor, longest: int, scaling: float | None
) -> Tensor:
    """[tokens, heads, head] of sequences one after another."""
    grouped = query.shape[1] != key.shape[1]
    if query.is_cuda and query.dtype in (torch.bfloat16, torch.float16):
        flash = varlen_attn(
            query,
            key,
            value,
            boundaries,
            boundaries,
            longest,
            longest,
            scale=scaling,
            window_size=(-1, 0),
            enable_gqa=grouped,
        )
        assert isinstance(flash, Tensor)
        return flash
    lengths = [end - start for start, end in pairwise(boundaries.tolist())]
    # split, not slices: the gradient of each slice would be as long as the whole micro-batch
    queries, keys, values = (torch.split(whole.transpose(0, 1)[None], lengths, 2) for whole in (query, key, value))
    parts = [
        functional.scaled_dot_product_attention(*one, is_causal=True, scale=scaling, enable_gqa=grouped)
        for one in zip(queries, keys, values, strict=True)
    ]
    return torch.cat(parts, dim=2)[0].transpose(0, 1)
