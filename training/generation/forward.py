"""Run forward passes for decoding: in batches for Llama and Qwen2 on a CPU, else row by row.

Logits of `LlamaForwardPass` are the model's, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from transformers import PreTrainedModel


INITIAL_CAPACITY = 128
"""Initial positions of a row."""

_BLOCK = 16
_LOWEST = torch.finfo(torch.float32).min


class ForwardPass(Protocol):
    """A forward pass with a cache of each row."""

    def prefill(self, ids: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        """Run right-padded prompts [prompt, length] into ``rows``; return last logits [prompt, vocabulary]."""
        ...

    def decode(self, last: Tensor, positions: Tensor) -> Tensor:
        """Run one token [row] in each of the first rows; return logits [row, vocabulary]."""
        ...

    def copy_rows(self, sources: Sequence[int], targets: Sequence[int], length: int) -> None:
        """Copy ``length`` positions; no row is both source and target."""
        ...


def forward_pass_for(model: PreTrainedModel, rows: int) -> ForwardPass:
    """Return the model's fastest forward pass over ``rows``."""
    return LlamaForwardPass(model, rows) if LlamaForwardPass.suits(model) else RowForwardPass(model)


class _Layer(NamedTuple):
    norm: Tensor
    qkv: nn.Linear
    out: nn.Linear
    after: Tensor
    gate_up: nn.Linear
    down: nn.Linear


class LlamaForwardPass:
    """The forward pass of Llama and Qwen2 in fp32 on a CPU; weights become views of joined ones."""

    def __init__(self, model: PreTrainedModel, rows: int) -> None:
        config: Any = model.config
        self._base: Any = model.base_model
        self._head: Any = model.get_output_embeddings()
        self._longest = int(config.max_position_embeddings)
        self._heads, self._kv_heads = int(config.num_attention_heads), int(config.num_key_value_heads)
        self._head_size = int(self._base.layers[0].self_attn.head_dim)
        self._scale = self._head_size**-0.5
        self._layers = [
            _Layer(
                layer.input_layernorm.weight,
                _joined([layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj]),
                layer.self_attn.o_proj,
                layer.post_attention_layernorm.weight,
                _joined([layer.mlp.gate_proj, layer.mlp.up_proj]),
                layer.mlp.down_proj,
            )
            for layer in self._base.layers
        ]
        self._act = self._base.layers[0].mlp.act_fn
        self._eps = float(config.rms_norm_eps)
        self._cos = self._sin = torch.zeros(0, self._head_size)
        shape = (2, rows, self._kv_heads, min(INITIAL_CAPACITY, self._longest), self._head_size)
        self._cache = [torch.zeros(shape) for _ in self._layers]  # keys and values

    @staticmethod
    def suits(model: PreTrainedModel) -> bool:
        """Return whether this pass can run the model."""
        from transformers import LlamaForCausalLM, Qwen2ForCausalLM

        config: Any = model.config
        rope_type = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
        return (
            type(model) in (LlamaForCausalLM, Qwen2ForCausalLM)
            and set(getattr(config, "layer_types", None) or ()) <= {"full_attention"}
            and rope_type in ("default", "linear", "llama3")
            and model.dtype == torch.float32
            and model.device.type == "cpu"
            and not any(parameter.requires_grad for parameter in model.parameters())
        )

    def prefill(self, ids: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        count, length = ids.shape
        self._make_room(length)

        def attend(number: int, rotated: Tensor, values: Tensor) -> Tensor:
            heads = rotated.view(count, length, -1, self._head_size).transpose(1, 2)
            query, keys = heads[:, : self._heads], heads[:, self._heads :]
            value_heads = values.reshape(count, length, -1, self._head_size).transpose(1, 2)
            self._cache[number][0, rows, :, :length], self._cache[number][1, rows, :, :length] = keys, value_heads
            attended = functional.scaled_dot_product_attention(
                query, keys, value_heads, is_causal=True, scale=self._scale, enable_gqa=self._heads != self._kv_heads
            )
            return attended.transpose(1, 2).reshape(count * length, -1)

        states = self._run(ids.flatten(), torch.arange(length).repeat(count), attend)
        return self._logits(states[torch.arange(count) * length + lengths - 1])

    def decode(self, last: Tensor, positions: Tensor) -> Tensor:
        rows = len(last)
        span = min(-(-(int(positions.max()) + 1) // _BLOCK) * _BLOCK, self._longest)
        self._make_room(span)
        owners = torch.arange(rows * self._kv_heads)
        slots = owners * self._capacity + positions.repeat_interleave(self._kv_heads)
        mask = torch.zeros(rows, span).masked_fill_(torch.arange(span) > positions[:, None], _LOWEST)
        mask = mask.repeat_interleave(self._kv_heads, 0)[:, None]

        def attend(number: int, rotated: Tensor, values: Tensor) -> Tensor:
            keys, values_flat = (tensor.view(-1, self._head_size) for tensor in self._cache[number])
            keys.index_copy_(0, slots, rotated[:, self._heads :].reshape(-1, self._head_size))
            values_flat.index_copy_(0, slots, values.reshape(-1, self._head_size))
            keys, values_flat = (
                tensor.view(-1, self._capacity, self._head_size)[: rows * self._kv_heads, :span]
                for tensor in (keys, values_flat)
            )
            query = rotated[:, : self._heads].reshape(rows * self._kv_heads, -1, self._head_size)
            scores = torch.baddbmm(mask, query, keys.transpose(1, 2), alpha=self._scale)
            return torch.bmm(scores.softmax(-1), values_flat).view(rows, -1)

        return self._logits(self._run(last, positions, attend))

    def copy_rows(self, sources: Sequence[int], targets: Sequence[int], length: int) -> None:
        for layer in self._cache:
            for source, target in zip(sources, targets, strict=True):  # faster than by index tensors
                layer[:, target, :, :length] = layer[:, source, :, :length]

    @property
    def _capacity(self) -> int:
        return self._cache[0].shape[3]

    def _make_room(self, length: int) -> None:
        """Extend the cache and the rotary tables; the first half of ``_sin`` is negated."""
        if length > self._capacity:
            more = max(length, min(2 * self._capacity, self._longest)) - self._capacity
            self._cache = [functional.pad(layer, (0, 0, 0, more)) for layer in self._cache]
        if length > len(self._cos):
            positions = torch.arange(max(length, 2 * len(self._cos), INITIAL_CAPACITY))[None]
            cos, sin = self._base.rotary_emb(self._base.embed_tokens.weight, positions)
            self._cos, self._sin = cos[0], sin[0].clone()
            self._sin[:, : self._head_size // 2] *= -1

    def _run(self, ids: Tensor, positions: Tensor, attend: Callable[[int, Tensor, Tensor], Tensor]) -> Tensor:
        """Return hidden states [token, width]; ``attend`` gets rotated queries and keys [token, head, feature]."""
        states: Tensor = functional.embedding(ids, self._base.embed_tokens.weight)
        cos, sin = self._cos[positions][:, None], self._sin[positions][:, None]
        rotated_heads = self._heads + self._kv_heads
        width, half = states.shape[-1:], self._head_size // 2
        for number, layer in enumerate(self._layers):
            normed = functional.rms_norm(states, width, layer.norm, self._eps)
            heads = layer.qkv(normed).view(len(ids), -1, self._head_size)
            unrotated = heads[:, :rotated_heads]
            rotated = torch.addcmul(unrotated * cos, unrotated.roll(half, -1), sin)
            attended = attend(number, rotated, heads[:, rotated_heads:])
            states = states + layer.out(attended)
            normed = functional.rms_norm(states, width, layer.after, self._eps)
            gate, up = layer.gate_up(normed).chunk(2, -1)
            states = states + layer.down(self._act(gate) * up)
        return states

    def _logits(self, states: Tensor) -> Tensor:
        normed = functional.rms_norm(states, states.shape[-1:], self._base.norm.weight, self._eps)
        return functional.linear(normed, self._head.weight, self._head.bias)


def _joined(layers: Sequence[nn.Linear]) -> nn.Linear:
    """Join projections of one input; their weights and biases become views."""
    sizes = [layer.out_features for layer in layers]
    has_bias = all(layer.bias is not None for layer in layers)
    joined = nn.Linear(layers[0].in_features, sum(sizes), has_bias, device="meta")  # draws no random numbers
    for name in ("weight", "bias") if has_bias else ("weight",):
        whole = torch.cat([getattr(layer, name) for layer in layers])
        setattr(joined, name, nn.Parameter(whole, requires_grad=False))
        for layer, view in zip(layers, torch.split(whole, sizes), strict=True):
            getattr(layer, name).data = view
    return joined


class RowForwardPass:
    """The model's own forward pass, with a transformers cache for each used row."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self._caches: dict[int, Any] = {}

    def prefill(self, ids: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        from transformers import DynamicCache

        logits = []
        for prompt, length, row in zip(ids, lengths.tolist(), rows.tolist(), strict=True):
            self._caches[row] = DynamicCache(config=self._model.config)
            logits.append(self._run(prompt[:length], row))
        return torch.stack(logits)

    def decode(self, last: Tensor, positions: Tensor) -> Tensor:  # noqa: ARG002 - caches count
        return torch.stack([self._run(token[None], row) for row, token in enumerate(last)])

    def copy_rows(self, sources: Sequence[int], targets: Sequence[int], length: int) -> None:  # noqa: ARG002
        for source, target in zip(sources, targets, strict=True):
            self._caches[target] = deepcopy(self._caches[source])

    def _run(self, ids: Tensor, row: int) -> Tensor:
        out = self._model(input_ids=ids[None], past_key_values=self._caches[row], use_cache=True, logits_to_keep=1)
        logits: Tensor = out.logits
        return logits[0, -1]
