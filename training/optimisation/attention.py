"""Keep packed sequences apart in causal attention, and in layers that carry a state.

Invariant: both raise without boundaries, so they never run on padded batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.varlen import varlen_attn
from torch.utils.checkpoint import checkpoint

from curation.policies.checkpoints import carries_state
from curation.records import ConfigError
from training.config import PackingSettings
from training.optimisation.packing import concatenated_ranges

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_SCORES, _MIN_ROWS = 2**24, 16
"""Max scores (64 MiB in fp32) and min queries of a block."""


@dataclass(frozen=True, slots=True)
class AttentionRule:
    """How a layer attends.

    Attributes:
        scaling: 1 / sqrt(head) if None.
        window: max tokens attended to, with the token itself.
        sinks: [heads] scores without a key (gpt-oss).
        softcap: scores become cap tanh(score / cap) (Gemma 2).
    """

    scaling: float | None = None
    window: int | None = None
    sinks: Tensor | None = None
    softcap: float | None = None

    def is_plain(self, length: int) -> bool:
        return self.sinks is None and self.softcap is None and (self.window is None or self.window >= length)


def block_attention(query: Tensor, key: Tensor, value: Tensor, rule: AttentionRule) -> Tensor:
    """Return [sequences, heads, tokens, head], like ``query``; other inputs may have a divisor of its heads."""
    sequences, heads, length, _ = query.shape
    window = length if rule.window is None else min(rule.window, length)
    rows = min(max(_SCORES // (sequences * heads * window), _MIN_ROWS), length)
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
    groups = query.shape[1] // key.shape[1]
    key, value = (tensor.repeat_interleave(groups, 1) for tensor in (key, value))
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


PACKED_ATTENTION = "goldilocks_packed"
"""Name for ``attn_implementation``."""

_HARMLESS = frozenset(
    "position_ids use_cache is_causal output_attentions output_router_logits position_embeddings".split()
)
"""Ignored arguments."""

_LARGEST_HEAD = 256
"""Max head size of flash attention."""

_STEP = 16
"""Lengths are padded to multiples, to share calls."""


def register_packed_attention() -> str:
    """Register the attention with transformers; return its name."""
    from transformers import AttentionInterface

    AttentionInterface.register(PACKED_ATTENTION, packed_attention)
    return PACKED_ATTENTION


@dataclass(frozen=True)
class PackedLayout:
    """A micro-batch's sequences, of at most ``longest`` tokens (see `MicroBatch`)."""

    cu_seqlens: Tensor
    longest: int
    unrolled: Tensor | None = None
    packed: Tensor | None = None

    def compute(self, rows: Sequence[Tensor], call: Callable[..., Tensor]) -> Tensor:
        """Apply ``call`` to groups [sequences, padded length, …] of ``rows`` [tokens, …]."""
        sizes, unrolled, packed = self._calls
        rows = [_take_tokens(whole, unrolled) for whole in rows]
        # split, not slices: the gradient of each slice would be as long as the whole micro-batch
        chunks = [torch.split(whole, [count * length for count, length in sizes]) for whole in rows]
        outputs = []
        for size, *taken in zip(sizes, *chunks, strict=True):
            outputs.append(call(*(chunk.view(*size, *chunk.shape[1:]) for chunk in taken)).flatten(0, 1))
        return _take_tokens(torch.cat(outputs), packed)

    @cached_property
    def _calls(self) -> tuple[list[tuple[int, int]], Tensor, Tensor]:
        """Return calls' (sequences, padded length), tokens by padded position, and positions by token."""
        starts, lengths = self.cu_seqlens[:-1].long(), self.cu_seqlens.diff().long()
        padded, order = ((lengths + _STEP - 1) // _STEP * _STEP).sort(stable=True)
        offset = concatenated_ranges(torch.zeros_like(padded), padded)
        starts, lengths = (values[order].repeat_interleave(padded) for values in (starts, lengths))  # of each token
        whole = starts + torch.minimum(offset, lengths - 1)
        positions = torch.empty(int(self.cu_seqlens[-1]), dtype=torch.long, device=padded.device)
        positions[whole[offset < lengths]] = (offset < lengths).nonzero()[:, 0]
        return (
            [(len(list(run)), length) for length, run in groupby(padded.tolist())],
            whole if self.unrolled is None else self.unrolled[whole],
            positions if self.packed is None else positions[self.packed],
        )


def packed_attention(
    module: nn.Module,  # noqa: ARG001 - transformers passes it first
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    sliding_window: int | None = None,
    s_aux: Tensor | None = None,
    softcap: float | None = None,
    layout: PackedLayout | None = None,
    **more: Any,
) -> tuple[Tensor, None]:
    """Return the attention's output, for transformers.

    Args:
        query: [1, heads, tokens, head]; ``key`` and ``value`` may have a divisor of its heads.
        s_aux: [heads] sinks.

    Returns:
        [1, tokens, heads, head], and no weights.
    """
    if layout is None or query.shape[0] != 1 or query.shape[2] != key.shape[2]:
        raise ValueError(
            "packed attention needs one packed row and its boundaries; call the model through PackedPolicy"
        )
    if attention_mask is not None:
        raise ValueError("packed attention takes no mask; call the model through PackedPolicy")
    if dropout:
        raise ConfigError(
            f"the model's attention_dropout is {dropout}, which is not supported; set it to 0 in its config.json."
        )
    unknown = [name for name, argument in more.items() if argument is not None and name not in _HARMLESS]
    if unknown or more.get("is_causal") is False:
        raise ConfigError(
            f"the model's attention uses {', '.join(unknown) or 'later tokens'}, which is not supported; "
            "take another model."
        )
    window = sliding_window if sliding_window is not None and sliding_window < layout.longest else None
    rule = AttentionRule(scaling, window, s_aux, softcap)
    rows = [whole[0].transpose(0, 1) for whole in (query, key, value)]  # [tokens, heads, head]
    is_half = query.dtype in (torch.bfloat16, torch.float16)
    is_known = query.shape[-1] == value.shape[-1] <= _LARGEST_HEAD and s_aux is None and softcap is None
    if query.is_cuda and is_half and is_known:
        return _flash(rows, layout, rule)[None], None
    return layout.compute(rows, partial(_whole_sequences, rule=rule))[None], None


def _flash(rows: Sequence[Tensor], layout: PackedLayout, rule: AttentionRule) -> Tensor:
    if layout.unrolled is not None:
        rows = [_take_tokens(whole, layout.unrolled) for whole in rows]
    query, key, value = rows
    output = varlen_attn(
        query,
        key,
        value,
        layout.cu_seqlens,
        layout.cu_seqlens,
        layout.longest,
        layout.longest,
        scale=rule.scaling,
        window_size=(-1 if rule.window is None else rule.window - 1, 0),
        enable_gqa=query.shape[1] != key.shape[1],
    )
    assert isinstance(output, Tensor)
    return output if layout.packed is None else _take_tokens(output, layout.packed)


def _whole_sequences(query: Tensor, key: Tensor, value: Tensor, rule: AttentionRule) -> Tensor:
    """Return the output for sequences of one length."""
    query, key, value = (tensor.transpose(1, 2) for tensor in (query, key, value))
    if rule.is_plain(query.shape[2]):
        grouped = query.shape[1] != key.shape[1]
        output = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, scale=rule.scaling, enable_gqa=grouped
        )
    else:
        output = block_attention(query, key, value, rule)
    return output.transpose(1, 2)


def _take_tokens(whole: Tensor, indices: Tensor) -> Tensor:
    """Select tokens as flat rows; faster gradient on a CPU."""
    return whole.flatten(1).index_select(0, indices).view(len(indices), *whole.shape[1:])


_MIXERS = ("linear_attn", "conv", "mamba")
"""Names of modules with a state."""

_KNOWN = frozenset({"linear_attention", "conv", "mamba", "hybrid"})
"""Kinds of layers with a state."""


def packing_for(model: PreTrainedModel, settings: PackingSettings) -> tuple[PackingSettings, str | None]:
    """Return the model's packing, and why it differs from ``settings``, if so."""
    config: Any = model.config
    kinds = set(getattr(config, "layer_types", None) or ())
    known = bool(_mixers(model)) and not carries_state({"layer_types": [*kinds - _KNOWN]})
    if settings.single or known or not carries_state(config.to_dict()):
        return settings, None
    return settings.model_copy(update={"single": True}), (
        f"model {config.model_type} has layers that may carry a state from token to token, so a micro-batch is one "
        "sequence, as with packing.single = true."
    )


def keep_sequences_apart(model: PreTrainedModel) -> None:
    """Reset layers with a state at each packed sequence."""
    for layer, mixer in _mixers(model):
        mixer.forward = _PackedMixer(mixer.forward)
        layer.register_forward_pre_hook(mixer.forward.take_layout, with_kwargs=True)


@contextmanager
def original_forward(model: PreTrainedModel) -> Iterator[None]:
    """Restore the layers' own forward pass in the block."""
    changed = [(mixer, mixer.forward) for _, mixer in _mixers(model) if isinstance(mixer.forward, _PackedMixer)]
    for mixer, packed in changed:
        mixer.forward = packed.whole
    try:
        yield
    finally:
        for mixer, packed in changed:
            mixer.forward = packed


def _mixers(model: PreTrainedModel) -> list[tuple[nn.Module, Any]]:
    """Return layers with a state, and the module that has it."""
    layers = getattr(model.get_decoder(), "layers", ())
    return [
        (layer, getattr(layer, name)) for layer in layers for name in _MIXERS if getattr(layer, name, None) is not None
    ]


class _PackedMixer:
    def __init__(self, forward: Callable[[Tensor], Tensor]) -> None:
        self.whole = forward
        """The layer's own forward pass."""
        self._layout: PackedLayout | None = None

    def take_layout(self, _: nn.Module, __: tuple[Any, ...], arguments: dict[str, Any]) -> None:
        self._layout = arguments.get("layout")

    def __call__(self, hidden_states: Tensor, *_: Any, **__: Any) -> Tensor:
        if self._layout is None:
            raise ValueError("a layer that carries a state needs the boundaries; call the model through PackedPolicy")
        return self._layout.compute([hidden_states[0]], self.whole)[None]
