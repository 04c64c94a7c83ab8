"""Run forward passes for decoding: a causal language model's own, or a faster one for Llama.

Invariants: the model's weights become views of `LlamaForwardPass`'s joined ones; its logits are the model's own, up to
rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn, stack
from torch.nn import functional

if TYPE_CHECKING:
    from transformers import PreTrainedModel


INITIAL_CAPACITY = 128
"""Positions of a row at first; doubled as needed."""

_BLOCK = 16


class KVCache:
    """Keys and values [row, head, position, feature] per layer."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self.layers: list[tuple[Tensor, Tensor]] = []
        self._row_index = self._positions = torch.zeros(0, dtype=torch.long)
        self._span = 0

    @property
    def capacity(self) -> int:
        """Return the positions per row."""
        return self.layers[0][0].shape[2] if self.layers else 0

    def allocate(self, examples: Sequence[tuple[Tensor, Tensor]], longest: int) -> None:
        """Allocate missing layers like these keys and values [_, head, _, feature]."""
        if not self.layers:
            positions = min(INITIAL_CAPACITY, longest)
            for keys, values in examples:
                empty = [kind.new_zeros(self._rows, kind.shape[1], positions, kind.shape[3]) for kind in (keys, values)]
                self.layers.append((empty[0], empty[1]))

    def grow(self, needed: int, longest: int) -> None:
        """Double the capacity up to ``longest`` until ``needed`` fit."""
        if needed <= self.capacity:
            return
        more = max(needed, min(2 * self.capacity, longest)) - self.capacity
        self.layers = [
            (functional.pad(keys, (0, 0, 0, more)), functional.pad(values, (0, 0, 0, more)))
            for keys, values in self.layers
        ]

    def set_positions(self, positions: Tensor, span: int) -> None:
        """Set where to write next, and the ``span`` to read."""
        self._row_index = torch.arange(len(positions), device=positions.device)
        self._positions, self._span = positions, span

    def update(self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Store keys and values [row, head, 1, feature]; return those of the span."""
        rows = len(self._row_index)
        held_keys, held_values = self.layers[layer]
        held_keys[self._row_index, :, self._positions] = keys[:, :, 0]
        held_values[self._row_index, :, self._positions] = values[:, :, 0]
        return held_keys[:rows, :, : self._span], held_values[:rows, :, : self._span]

    def write_prompts(self, layer: int, rows: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store keys and values [prompt, head, position, feature] in these rows."""
        length = keys.shape[2]
        held_keys, held_values = self.layers[layer]
        held_keys[rows, :, :length] = keys
        held_values[rows, :, :length] = values

    def copy_rows(self, sources: Sequence[int], targets: Sequence[int], length: int) -> None:
        """Copy ``length`` positions; no row is both source and target."""
        if not sources:
            return
        device = self.layers[0][0].device
        source_rows, target_rows = torch.tensor(sources, device=device), torch.tensor(targets, device=device)
        for layer in self.layers:
            for part in layer:
                part[target_rows, :, :length] = part[source_rows, :, :length]


class Cache(Protocol):
    """A forward pass's memory of each row's tokens."""

    def copy_rows(self, sources: Sequence[int], targets: Sequence[int], length: int) -> None: ...


class ForwardPass(Protocol):
    """A forward pass with its own kind of cache."""

    def new_cache(self, rows: int) -> Any:
        """Return an empty `Cache` of ``rows`` rows."""
        ...

    def prefill(self, ids: Tensor, lengths: Tensor, rows: Tensor, cache: Any) -> Tensor:
        """Run right-padded prompts [prompt, length] into ``rows``; return their last logits [prompt, vocabulary]."""
        ...

    def decode(self, last: Tensor, positions: Tensor, cache: Any) -> Tensor:
        """Run one token [row] in each of the first rows; return logits [row, vocabulary]."""
        ...


def forward_pass_for(model: PreTrainedModel) -> ForwardPass:
    """Return the model's fastest forward pass."""
    if LlamaForwardPass.suits(model):
        return LlamaForwardPass(model)
    return ModelForwardPass(model) if keeps_all_keys(model) else RowForwardPass(model)


class ModelForwardPass:
    """The model's own forward pass."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self._longest = int(model.config.max_position_embeddings)

    def new_cache(self, rows: int) -> KVCache:
        """Return an empty cache."""
        return KVCache(rows)

    def prefill(self, ids: Tensor, lengths: Tensor, rows: Tensor, cache: KVCache) -> Tensor:
        """See `ForwardPass.prefill`."""
        ends, end_of = torch.unique(lengths - 1, return_inverse=True)
        out = self._model(input_ids=ids, use_cache=True, logits_to_keep=ends)
        layers = out.past_key_values.layers
        cache.allocate([(layer.keys, layer.values) for layer in layers], self._longest)
        cache.grow(ids.shape[1], self._longest)
        for number, layer in enumerate(layers):
            cache.write_prompts(number, rows, layer.keys, layer.values)
        logits: Tensor = out.logits[torch.arange(len(ids), device=ids.device), end_of]
        return logits

    def decode(self, last: Tensor, positions: Tensor, cache: KVCache) -> Tensor:
        """See `ForwardPass.decode`."""
        span = _read_span(positions, self._longest)
        cache.grow(span, self._longest)
        cache.set_positions(positions, span)
        logits: Tensor = self._model(
            input_ids=last[:, None],
            position_ids=positions[:, None],
            attention_mask=_attention_mask(positions, span, self._model.dtype)[:, None, None],
            past_key_values=cache,
            use_cache=True,
        ).logits
        return logits[:, -1]


@dataclass(frozen=True, slots=True)
class _Layer:
    """Weights, each [out, in]; ``qkv`` and ``gate_up`` are joined."""

    norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    out: Tensor
    out_bias: Tensor | None
    after: Tensor
    gate_up: Tensor
    gate_up_bias: Tensor | None
    down: Tensor
    down_bias: Tensor | None


class LlamaForwardPass:
    """The forward pass of Llama and Qwen2 in fp32 on a CPU."""

    def __init__(self, model: PreTrainedModel) -> None:
        config: Any = model.config
        self._base: Any = model.base_model
        self._head: Any = model.get_output_embeddings()
        self._longest = int(config.max_position_embeddings)
        self._heads, self._kv_heads = int(config.num_attention_heads), int(config.num_key_value_heads)
        self._head_size = int(self._base.layers[0].self_attn.head_dim)
        self._scale = self._head_size**-0.5
        self._layers = [_fuse_layer(layer) for layer in self._base.layers]
        self._act = self._base.layers[0].mlp.act_fn
        self._eps = float(config.rms_norm_eps)
        self._cos = self._sin = torch.zeros(0, self._head_size)

    def new_cache(self, rows: int) -> KVCache:
        """Return an empty cache."""
        return KVCache(rows)

    @staticmethod
    def suits(model: PreTrainedModel) -> bool:
        """Return whether this pass can run the model."""
        from transformers import LlamaForCausalLM, Qwen2ForCausalLM

        config: Any = model.config
        rope_type = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
        return (
            type(model) in (LlamaForCausalLM, Qwen2ForCausalLM)
            and keeps_all_keys(model)
            and rope_type in ("default", "linear", "llama3")
            and model.dtype == torch.float32
            and model.device.type == "cpu"
            and not any(parameter.requires_grad for parameter in model.parameters())
        )

    def prefill(self, ids: Tensor, lengths: Tensor, rows: Tensor, cache: KVCache) -> Tensor:
        """See `ForwardPass.prefill`."""
        count, length = ids.shape
        example = torch.zeros(1, self._kv_heads, 1, self._head_size)
        cache.allocate([(example, example)] * len(self._layers), self._longest)
        cache.grow(length, self._longest)
        self._extend_rotary_tables(length)

        def attend(number: int, rotated: Tensor, values: Tensor) -> Tensor:
            heads = rotated.view(count, length, -1, self._head_size).transpose(1, 2)
            query, keys = heads[:, : self._heads], heads[:, self._heads :]
            value_heads = values.reshape(count, length, -1, self._head_size).transpose(1, 2)
            cache.write_prompts(number, rows, keys, value_heads)
            attended = functional.scaled_dot_product_attention(
                query, keys, value_heads, is_causal=True, scale=self._scale, enable_gqa=self._heads != self._kv_heads
            )
            return attended.transpose(1, 2).reshape(count * length, -1)

        states = self._run(ids.flatten(), torch.arange(length).repeat(count), attend)
        return self._logits(states[torch.arange(count) * length + lengths - 1])

    def decode(self, last: Tensor, positions: Tensor, cache: KVCache) -> Tensor:
        """See `ForwardPass.decode`."""
        rows = len(last)
        span = _read_span(positions, self._longest)
        cache.grow(span, self._longest)
        self._extend_rotary_tables(span)
        owners = torch.arange(rows * self._kv_heads)
        places = owners * cache.capacity + positions.repeat_interleave(self._kv_heads)
        mask = _attention_mask(positions, span, torch.float32).repeat_interleave(self._kv_heads, 0)[:, None]

        def attend(number: int, rotated: Tensor, values: Tensor) -> Tensor:
            keys, values_flat = (part.view(-1, self._head_size) for part in cache.layers[number])
            keys.index_copy_(0, places, rotated[:, self._heads :].reshape(-1, self._head_size))
            values_flat.index_copy_(0, places, values.reshape(-1, self._head_size))
            keys, values_flat = (
                part.view(-1, cache.capacity, self._head_size)[: rows * self._kv_heads, :span]
                for part in (keys, values_flat)
            )
            query = rotated[:, : self._heads].reshape(rows * self._kv_heads, -1, self._head_size)
            scores = torch.baddbmm(mask, query, keys.transpose(1, 2), alpha=self._scale)
            return torch.bmm(scores.softmax(-1), values_flat).view(rows, -1)

        return self._logits(self._run(last, positions, attend))

    def _run(self, ids: Tensor, positions: Tensor, attend: Callable[[int, Tensor, Tensor], Tensor]) -> Tensor:
        """Return hidden states [token, width]; ``attend`` gets rotated queries and keys [token, head, feature]."""
        states: Tensor = functional.embedding(ids, self._base.embed_tokens.weight)
        cos, sin = self._cos[positions][:, None], self._sin[positions][:, None]
        rotated_heads = self._heads + self._kv_heads
        width, half = states.shape[-1:], self._head_size // 2
        for number, layer in enumerate(self._layers):
            normed = functional.rms_norm(states, width, layer.norm, self._eps)
            heads = functional.linear(normed, layer.qkv, layer.qkv_bias).view(len(ids), -1, self._head_size)
            unrotated = heads[:, :rotated_heads]
            rotated = torch.addcmul(unrotated * cos, unrotated.roll(half, -1), sin)
            attended = attend(number, rotated, heads[:, rotated_heads:])
            states = states + functional.linear(attended, layer.out, layer.out_bias)
            normed = functional.rms_norm(states, width, layer.after, self._eps)
            gate, up = functional.linear(normed, layer.gate_up, layer.gate_up_bias).chunk(2, -1)
            states = states + functional.linear(self._act(gate) * up, layer.down, layer.down_bias)
        return states

    def _logits(self, states: Tensor) -> Tensor:
        normed = functional.rms_norm(states, states.shape[-1:], self._base.norm.weight, self._eps)
        return functional.linear(normed, self._head.weight, self._head.bias)

    def _extend_rotary_tables(self, length: int) -> None:
        """Extend the tables; the first half of ``_sin`` is negated."""
        if length <= len(self._cos):
            return
        positions = torch.arange(max(length, 2 * len(self._cos), INITIAL_CAPACITY))[None]
        cos, sin = self._base.rotary_emb(self._base.embed_tokens.weight, positions)
        self._cos, self._sin = cos[0], sin[0].clone()
        self._sin[:, : self._head_size // 2] *= -1


def _fuse_layer(layer: Any) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    qkv, qkv_bias = _fuse_projections([attention.q_proj, attention.k_proj, attention.v_proj])
    gate_up, gate_up_bias = _fuse_projections([mlp.gate_proj, mlp.up_proj])
    return _Layer(
        layer.input_layernorm.weight,
        qkv,
        qkv_bias,
        attention.o_proj.weight,
        attention.o_proj.bias,
        layer.post_attention_layernorm.weight,
        gate_up,
        gate_up_bias,
        mlp.down_proj.weight,
        mlp.down_proj.bias,
    )


def _fuse_projections(parts: Sequence[nn.Linear]) -> tuple[Tensor, Tensor | None]:
    """Join projections of one input; their weights and biases become views."""
    weight = torch.cat([part.weight for part in parts])
    bias = torch.cat([part.bias for part in parts]) if all(part.bias is not None for part in parts) else None
    start = 0
    for part in parts:
        end = start + part.out_features
        part.weight.data = weight[start:end]
        if bias is not None:
            part.bias.data = bias[start:end]
        start = end
    return weight, bias


def _read_span(positions: Tensor, longest: int) -> int:
    return min(-(-(int(positions.max()) + 1) // _BLOCK) * _BLOCK, longest)


def _attention_mask(positions: Tensor, span: int, dtype: torch.dtype) -> Tensor:
    allowed = torch.arange(span, device=positions.device) <= positions[:, None]
    mask = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device)
    return mask.masked_fill_(~allowed, torch.finfo(dtype).min)


class RowCaches:
    """A transformers cache for each used row."""

    def __init__(self) -> None:
        self.rows: dict[int, Any] = {}

    def copy_rows(self, sources: Sequence[int], targets: Sequence[int], length: int) -> None:  # noqa: ARG002
        """Copy whole rows; no row is both source and target."""
        for source, target in zip(sources, targets, strict=True):
            self.rows[target] = deepcopy(self.rows[source])


class RowForwardPass:
    """The model's own forward pass, row by row."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model

    def new_cache(self, rows: int) -> RowCaches:  # noqa: ARG002
        """Return an empty cache."""
        return RowCaches()

    def prefill(self, ids: Tensor, lengths: Tensor, rows: Tensor, cache: RowCaches) -> Tensor:
        """See `ForwardPass.prefill`."""
        from transformers import DynamicCache

        logits = []
        for prompt, length, row in zip(ids, lengths.tolist(), rows.tolist(), strict=True):
            cache.rows[row] = DynamicCache(config=self._model.config)
            logits.append(self._run(prompt[None, :length], cache.rows[row]))
        return stack(logits)

    def decode(self, last: Tensor, positions: Tensor, cache: RowCaches) -> Tensor:  # noqa: ARG002 - caches count
        """See `ForwardPass.decode`."""
        return stack([self._run(token[None, None], cache.rows[row]) for row, token in enumerate(last)])

    def _run(self, ids: Tensor, cache: Any) -> Tensor:
        logits: Tensor = self._model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits
        return logits[0, -1]


def keeps_all_keys(model: Any) -> bool:
    """Return whether each layer keeps only keys and values, of all tokens."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    config: Any = model.config
    layers = DynamicCache(config=config).layers
    return len(layers) == config.num_hidden_layers and all(
        type(layer) is DynamicLayer
        or (type(layer) is DynamicSlidingWindowLayer and layer.sliding_window >= config.max_position_embeddings)
        for layer in layers
    )
