"""Estimate the GPU memory of a training process.

For P parameters over R ranks, b bytes a computing number, T tokens, L layers; in bytes:

    states      = 16 P / R                      fp32 weights, gradients and AdamW's two moments
    reference   = b P / R                       a reference or teacher
    gathered    = b (3 P_layer + 2 P_ends)      two layers and a gradient, and embeddings; none for one rank in fp32
    head        = 8 P_out                       in bf16: fp32 gradients of the output layer and a chunk
    activations = T (b L d + layer)             without activation checkpointing: T L layer
    layer       = b (4 d + 3 d_q + 4 d_kv + 4 f) + 8 d
    logits      = 16 B                          B logits at once, softmax and gradients in fp32

With adapters: states = (4 P + 16 P_lora) / R, 2 P_layer gathered, no head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

GIB = 2**30

LOGIT_ELEMENTS = 2**26
"""Max logits in training: 256 MiB in fp32."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes of a Llama-like decoder."""

    vocab_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    tie_embeddings: bool = False

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ModelShape:
        """Return the sizes in a model's `config.json`.

        Raises:
            KeyError: a size is missing.
        """
        text = config.get("text_config") or config
        heads, hidden = int(text["num_attention_heads"]), int(text["hidden_size"])
        return cls(
            int(text["vocab_size"]),
            hidden,
            int(text["num_hidden_layers"]),
            heads,
            int(text.get("num_key_value_heads") or heads),
            int(text.get("head_dim") or hidden // heads),
            int(text["intermediate_size"]),
            tie_embeddings=bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings", False))),
        )

    @property
    def layer_parameters(self) -> int:
        """Return a layer's parameters, without biases."""
        attention = self.hidden_size * self.head_dim * (2 * self.num_heads + 2 * self.num_kv_heads)
        return attention + 3 * self.hidden_size * self.intermediate_size + 2 * self.hidden_size

    def adapter_parameters(self, rank: int) -> int:
        """Return the parameters of adapters of this rank."""
        queries, kv = self.hidden_size + self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        mlp = self.hidden_size + self.intermediate_size
        return self.num_layers * rank * (2 * queries + 2 * (self.hidden_size + kv) + 3 * mlp)

    @property
    def embedding_parameters(self) -> int:
        """Return the parameters of embedding, output layer and last norm."""
        return self.vocab_size * self.hidden_size * (1 if self.tie_embeddings else 2) + self.hidden_size

    @property
    def num_parameters(self) -> int:
        return self.num_layers * self.layer_parameters + self.embedding_parameters


MODEL_SHAPES = {
    "1.5B": ModelShape(151_936, 1536, 28, 12, 2, 128, 8960, tie_embeddings=True),
    "7B": ModelShape(152_064, 3584, 28, 28, 4, 128, 18_944),
    "24B": ModelShape(131_072, 5120, 40, 32, 8, 128, 32_768),
}
"""Published sizes of Qwen2.5-1.5B, Qwen2.5-7B and Mistral-Small-24B."""


class MemoryEstimate(NamedTuple):
    """Bytes on each GPU by purpose."""

    states: float
    reference: float
    gathered: float
    activations: float
    logits: float
    head: float

    @property
    def total(self) -> float:
        """Return the sum and 10 % for fragmentation and buffers."""
        return 1.1 * sum(self)


def estimate_memory(
    shape: ModelShape,
    ranks: int,
    tokens: int,
    *,
    checkpointing: bool = True,
    dtype_bytes: int = 2,
    logit_elements: int = LOGIT_ELEMENTS,
    reference: bool = False,
    lora_rank: int = 0,
) -> MemoryEstimate:
    """Return a rank's memory for micro-batches of ``tokens``; ``lora_rank`` 0 trains all weights."""
    hidden, kv, queries = shape.hidden_size, shape.num_kv_heads * shape.head_dim, shape.num_heads * shape.head_dim
    layer = dtype_bytes * (4 * hidden + 3 * queries + 4 * kv + 4 * shape.intermediate_size) + 8 * hidden
    kept = dtype_bytes * hidden * shape.num_layers + layer if checkpointing else layer * shape.num_layers
    frozen = 4 * shape.num_parameters if lora_rank else 0
    trained = shape.adapter_parameters(lora_rank) if lora_rank else shape.num_parameters
    layers = (2 if lora_rank else 3) * shape.layer_parameters + 2 * shape.embedding_parameters
    return MemoryEstimate(
        states=(frozen + 16 * trained) / ranks,
        reference=dtype_bytes * shape.num_parameters / ranks if reference else 0.0,
        gathered=dtype_bytes * layers if ranks > 1 or dtype_bytes < 4 else 0.0,
        activations=tokens * kept,
        logits=16 * max(logit_elements, shape.vocab_size),
        head=8 * shape.vocab_size * hidden if dtype_bytes < 4 and not lora_rank else 0.0,
    )
