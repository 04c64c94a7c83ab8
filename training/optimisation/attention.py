"""Keep packed sequences apart in causal attention, on any device, and in layers that carry a state.

Invariant: both refuse to run without boundaries, so they cannot run on padded batches by mistake.
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

_SCORES, _FEWEST = 2**24, 16
"""Scores at once (64 MiB in fp32), and min queries of a block."""


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
        """Return whether this is plain causal attention at this length."""
        return self.sinks is None and self.softcap is None and (self.window is None or self.window >= length)


def block_attention(query: Tensor, key: Tensor, value: Tensor, rule: AttentionRule) -> Tensor:
    """Return [sequences, heads, tokens, head], like ``query``; ``key`` and ``value`` may have fewer heads, a divisor of
    its.
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


PACKED_ATTENTION = "goldilocks_packed"
"""Name for ``attn_implementation``."""

_HARMLESS = frozenset(
    "position_ids use_cache is_causal output_attentions output_router_logits position_embeddings".split()
)
"""Arguments that change nothing here."""

_LARGEST_HEAD = 256
"""Max head size of flash attention."""

_STEP = 16
"""Lengths are padded to multiples, so that more sequences share a call."""


def register_packed_attention() -> str:
    """Register the attention with transformers; return its name."""
    from transformers import AttentionInterface

    AttentionInterface.register(PACKED_ATTENTION, packed_attention)
    return PACKED_ATTENTION


@dataclass(frozen=True)
class PackedLayout:
    """Where a micro-batch's sequences are, of at most ``longest`` tokens (see `MicroBatch`)."""

    cu_seqlens: Tensor
    longest: int
    unrolled: Tensor | None = None
    packed: Tensor | None = None

    def compute(self, rows: Sequence[Tensor], call: Callable[..., Tensor]) -> Tensor:
        """Apply ``call`` to groups [sequences, padded length, …] of ``rows`` [tokens, …]."""
        sizes, unrolled, packed = self._calls
        rows = [_take_tokens(whole, unrolled) for whole in rows]
        # split, not slices: the gradient of each slice would be as long as the whole micro-batch
        parts = [torch.split(whole, [count * length for count, length in sizes]) for whole in rows]
        outputs = []
        for size, *taken in zip(sizes, *parts, strict=True):
            outputs.append(call(*(part.view(*size, *part.shape[1:]) for part in taken)).flatten(0, 1))
        return _take_tokens(torch.cat(outputs), packed)

    @cached_property
    def _calls(self) -> tuple[list[tuple[int, int]], Tensor, Tensor]:
        """Return each call's (sequences, padded length), which token each padded one is, and where each token is."""
        starts, lengths = self.cu_seqlens[:-1].long(), self.cu_seqlens.diff().long()
        padded, order = ((lengths + _STEP - 1) // _STEP * _STEP).sort(stable=True)
        offset = concatenated_ranges(torch.zeros_like(padded), padded)
        starts, lengths = (values[order].repeat_interleave(padded) for values in (starts, lengths))  # of each token
        whole = starts + torch.minimum(offset, lengths - 1)
        place = torch.empty(int(self.cu_seqlens[-1]), dtype=torch.long, device=padded.device)
        place[whole[offset < lengths]] = (offset < lengths).nonzero()[:, 0]
        return (
            [(len(list(run)), length) for length, run in groupby(padded.tolist())],
            whole if self.unrolled is None else self.unrolled[whole],
            place if self.packed is None else place[self.packed],
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
        query: [1, heads, tokens, head]; ``key`` and ``value`` may have fewer heads, a divisor of the query's.
        sliding_window: as `AttentionRule.window`.
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
        raise ConfigError(f"the model's attention_dropout is {dropout}, which is not supported here; set it to 0.")
    unknown = [name for name, given in more.items() if given is not None and name not in _HARMLESS]
    if unknown or more.get("is_causal") is False:
        raise ConfigError(
            f"the model asks its attention for {', '.join(unknown) or 'a look ahead'}, which is not supported here; "
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
    query, key, value = (part.transpose(1, 2) for part in (query, key, value))
    if rule.is_plain(query.shape[2]):
        grouped = query.shape[1] != key.shape[1]
        output = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, scale=rule.scaling, enable_gqa=grouped
        )
    else:
        output = block_attention(query, key, value, rule)
    return output.transpose(1, 2)


def _take_tokens(whole: Tensor, places: Tensor) -> Tensor:
    """Select tokens as flat rows, whose gradient is faster on a CPU."""
    return whole.flatten(1).index_select(0, places).view(len(places), *whole.shape[1:])


_MIXERS = ("linear_attn", "conv", "mamba")
"""Their names in transformers' layers."""

_KNOWN = frozenset({"linear_attention", "conv", "mamba", "hybrid"})
"""Their kinds in configurations."""


def packing_for(model: PreTrainedModel, settings: PackingSettings) -> tuple[PackingSettings, str | None]:
    """Return this model's packing, and why it differs from ``settings``, if it does."""
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
    """Reset layers that carry a state at each packed sequence."""
    for layer, mixer in _mixers(model):
        mixer.forward = _Apart(mixer.forward)
        layer.register_forward_pre_hook(mixer.forward.take_layout, with_kwargs=True)


@contextmanager
def as_transformers_has_them(model: PreTrainedModel) -> Iterator[None]:
    """Restore the layers' own forward pass within the block."""
    changed = [(mixer, mixer.forward) for _, mixer in _mixers(model) if isinstance(mixer.forward, _Apart)]
    for mixer, apart in changed:
        mixer.forward = apart.whole
    try:
        yield
    finally:
        for mixer, apart in changed:
            mixer.forward = apart


def _mixers(model: PreTrainedModel) -> list[tuple[nn.Module, Any]]:
    """Return the layers that carry a state, with the module that does."""
    layers = getattr(model.get_decoder(), "layers", ())
    return [
        (layer, getattr(layer, name)) for layer in layers for name in _MIXERS if getattr(layer, name, None) is not None
    ]


class _Apart:
    def __init__(self, forward: Callable[[Tensor], Tensor]) -> None:
        self.whole = forward
        """The layer's own forward pass."""
        self._layout: PackedLayout | None = None

    def take_layout(self, _: nn.Module, __: tuple[Any, ...], given: dict[str, Any]) -> None:
        self._layout = given.get("layout")

    def __call__(self, hidden_states: Tensor, *_: Any, **__: Any) -> Tensor:
        if self._layout is None:
            raise ValueError("a layer that carries a state needs the boundaries; call the model through PackedPolicy")
        return self._layout.compute([hidden_states[0]], self.whole)[None]
