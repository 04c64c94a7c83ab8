"""What a training process needs of its GPU's memory, estimated before a run is started.

The formula, for P parameters over R ranks (`fully_shard`), bytes:

    states      = 16 P / R                      fp32 weights, gradients and AdamW's two moments
    reference   = b P / R                       only where the KL term is on: its weights; gathered as below, layer by
                                                layer, but at another time than the policy's
    gathered    = 3 b (P_layer + P_ends)        a layer gathered, the next one prefetched, its gradient unreduced; the
                                                root's embedding and output layer stay gathered; b bytes a number
    head        = 8 P_out                       in bf16 only: the output layer's gradient in fp32, and a chunk's part
    activations = T (c L d + k (d, heads, f))   T tokens of a micro-batch: with activation checkpointing one input of
                                                d numbers a layer (c = b) and all of a single layer; without, all of L
                                                With adapters (`lora`) W is frozen: states = (4 P + 16 P_lora) / R,
                                                no gradient of a layer is gathered, and no head's is added up
    logits      = 4 · 4 B                       the B logits that exist at once (`LOGIT_ELEMENTS`), in fp32, with
                                                their softmax and gradients

A layer keeps for its backward pass, per token: the inputs of its two norms, of the attention and of its output (4 d and
the fp32 copies that the norms make, 8 d / b), queries, keys and values (d + 2 d_kv, before and after rotation), the
gate, the up projection, the activation and their product (4 f).

Invariant: an estimate, not a measurement; fragmentation and the collectives' buffers are the reader's margin (10 %
here). Attention keeps no tokens x tokens matrix, since it is flash attention.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

GIB = 2**30

LOGIT_ELEMENTS = 2**26
"""Logits that exist at once in training: 256 MiB in fp32."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A Llama-like decoder's sizes; ``tie_embeddings``: the output layer is the embedding.

    Example: ``ModelShape(151_936, 1536, 28, 12, 2, 128, 8960, tie_embeddings=True)``
    """

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
            KeyError: it has no such sizes.
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
        """Return the number of parameters of a layer: attention, gated MLP and two norms (biases left out)."""
        attention = self.hidden_size * self.head_dim * (2 * self.num_heads + 2 * self.num_kv_heads)
        return attention + 3 * self.hidden_size * self.intermediate_size + 2 * self.hidden_size

    def adapter_parameters(self, rank: int) -> int:
        """Return the number of parameters of adapters of this rank next to linear layers of all layers."""
        queries, kv = self.hidden_size + self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        mlp = self.hidden_size + self.intermediate_size
        return self.num_layers * rank * (2 * queries + 2 * (self.hidden_size + kv) + 3 * mlp)

    @property
    def embedding_parameters(self) -> int:
        """Return the number of parameters of embedding, output layer and last norm."""
        return self.vocab_size * self.hidden_size * (1 if self.tie_embeddings else 2) + self.hidden_size

    @property
    def num_parameters(self) -> int:
        """Return the number of all parameters."""
        return self.num_layers * self.layer_parameters + self.embedding_parameters


MODEL_SHAPES = {
    "1.5B": ModelShape(151_936, 1536, 28, 12, 2, 128, 8960, tie_embeddings=True),
    "7B": ModelShape(152_064, 3584, 28, 28, 4, 128, 18_944),
    "24B": ModelShape(131_072, 5120, 40, 32, 8, 128, 32_768),
}
"""Sizes of Qwen2.5-1.5B, Qwen2.5-7B and Mistral-Small-24B, from their published configurations."""


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes on each GPU, by what they are for."""

    states: float
    reference: float
    gathered: float
    activations: float
    logits: float
    head: float = 0.0

    @property
    def total(self) -> float:
        """Return the sum in bytes, with 10 % for fragmentation and buffers."""
        return 1.1 * (self.states + self.reference + self.gathered + self.activations + self.logits + self.head)


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
    """Return the memory that one rank needs.

    Args:
        ranks: GPUs over which the model is sharded.
        tokens: room of a micro-batch (`packing.micro_batch_tokens`), at least the longest sequence.
        checkpointing: `compute.activation_checkpointing`.
        dtype_bytes: bytes of a computing number, 2 for bf16.
        logit_elements: logits that exist at once.
        reference: whether `objective.kl_coef` is on.
        lora_rank: `lora.rank`; 0 where all weights are trained.
    """
    kv = shape.num_kv_heads * shape.head_dim
    queries = shape.num_heads * shape.head_dim
    per_layer = (
        dtype_bytes * (4 * shape.hidden_size + 2 * (queries + 2 * kv) + queries + 4 * shape.intermediate_size)
        + 8 * shape.hidden_size
    )
    per_token = (
        dtype_bytes * shape.hidden_size * shape.num_layers + per_layer
        if checkpointing
        else per_layer * shape.num_layers
    )
    gathered = (
        0.0 if ranks == 1 and dtype_bytes == 4 else dtype_bytes * (2 if lora_rank else 3) * shape.layer_parameters
    )
    gathered += 0.0 if ranks == 1 and dtype_bytes == 4 else dtype_bytes * 2 * shape.embedding_parameters
    adapters = shape.adapter_parameters(lora_rank)
    states = 16.0 * shape.num_parameters if not lora_rank else 4.0 * shape.num_parameters + 16.0 * adapters
    return MemoryEstimate(
        states=states / ranks,
        reference=float(dtype_bytes * shape.num_parameters / ranks) if reference else 0.0,
        gathered=gathered,
        activations=float(tokens * per_token),
        logits=16.0 * max(logit_elements, shape.vocab_size),
        head=8.0 * shape.vocab_size * shape.hidden_size if dtype_bytes < 4 and not lora_rank else 0.0,
    )


def memory_table(
    lengths: tuple[int, ...] = (8192, 16_384, 40_960), ranks: tuple[int, ...] = (1, 8, 32), lora_rank: int = 0
) -> str:
    """Return the estimates for `MODEL_SHAPES` as Markdown, GiB a GPU, with activation checkpointing in bf16."""
    lines = [
        "| model | GPUs | " + " | ".join(f"{length:,} tokens" for length in lengths) + " |",
        "|---|---|" + "---|" * len(lengths),
    ]
    for name, shape in MODEL_SHAPES.items():
        for count in ranks:
            cells = [
                f"{estimate_memory(shape, count, length, lora_rank=lora_rank).total / GIB:.0f}" for length in lengths
            ]
            lines.append(f"| {name} | {count} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
