"""What a training process needs of its GPU's memory, estimated before a run is started.

The formula, for P parameters over R ranks (`fully_shard`), bytes:

    states      = 16 P / R                      fp32 weights, gradients and AdamW's two moments
    reference   = b P / R                       only where the KL term is on: its weights; gathered as below, layer by
                                                layer, but at another time than the policy's
    gathered    = 3 b (P_layer + P_ends)        a layer gathered, the next one prefetched, its gradient unreduced; the
                                                root's embedding and output layer stay gathered; b bytes a number
    activations = T (c L d + k (d, heads, f))   T tokens of a micro-batch: with activation checkpointing one input of
                                                d numbers a layer (c = b) and all of a single layer; without, all of L
    logits      = 4 · 4 B                       the B logits that exist at once (packing.logit_elements), in fp32, with
                                                their softmax and gradients

A layer keeps for its backward pass, per token: the inputs of its two norms, of the attention and of its output (4 d and
the fp32 copies that the norms make, 8 d / b), queries, keys and values (d + 2 d_kv, before and after rotation), the
gate, the up projection, the activation and their product (4 f).

Invariant: an estimate, not a measurement; fragmentation and the collectives' buffers are the reader's margin (10 %
here). Attention keeps no tokens x tokens matrix, since it is flash attention.

Not here: the generator's memory, which is its own GPU's (`training.rollouts.curriculum.triggers.KVCacheModel`).
"""

from __future__ import annotations

from dataclasses import dataclass

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Shape:
    """A Llama-like decoder's sizes; ``tied``: the output layer is the embedding.

    Example: ``Shape(vocabulary=151_936, width=1536, layers=28, heads=12, kv_heads=2, head=128, inner=8960, tied=True)``
    """

    vocabulary: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    inner: int
    tied: bool = False

    @property
    def layer_parameters(self) -> int:
        """Parameters of a layer: attention, gated MLP and two norms (biases left out)."""
        attention = self.width * self.head * (2 * self.heads + 2 * self.kv_heads)
        return attention + 3 * self.width * self.inner + 2 * self.width

    @property
    def end_parameters(self) -> int:
        """Parameters of embedding, output layer and last norm."""
        return self.vocabulary * self.width * (1 if self.tied else 2) + self.width

    @property
    def parameters(self) -> int:
        """All parameters."""
        return self.layers * self.layer_parameters + self.end_parameters


MODEL_SHAPES = {
    "1.5B": Shape(151_936, 1536, 28, 12, 2, 128, 8960, tied=True),
    "7B": Shape(152_064, 3584, 28, 28, 4, 128, 18_944),
    "24B": Shape(131_072, 5120, 40, 32, 8, 128, 32_768),
}
"""Sizes of Qwen2.5-1.5B, Qwen2.5-7B and Mistral-Small-24B, from their published configurations."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes on each GPU, by what they are for."""

    states: float
    reference: float
    gathered: float
    activations: float
    logits: float

    @property
    def total(self) -> float:
        """All of it, with 10 % for fragmentation and buffers."""
        return 1.1 * (self.states + self.reference + self.gathered + self.activations + self.logits)


def estimate(
    shape: Shape,
    ranks: int,
    tokens: int,
    *,
    checkpointing: bool = True,
    number: int = 2,
    logit_elements: int = 2**26,
    reference: bool = False,
) -> Estimate:
    """Memory of one rank.

    Args:
        ranks: GPUs over which the model is sharded.
        tokens: room of a micro-batch (`packing.tokens`), at least the longest sequence.
        checkpointing: `compute.activation_checkpointing`.
        number: bytes of a computing number, 2 for bf16.
        logit_elements: `packing.logit_elements`.
        reference: whether `objective.kl` is on.
    """
    kv = shape.kv_heads * shape.head
    queries = shape.heads * shape.head
    per_layer = number * (4 * shape.width + 2 * (queries + 2 * kv) + queries + 4 * shape.inner) + 8 * shape.width
    kept = number * shape.width * shape.layers + per_layer if checkpointing else per_layer * shape.layers
    gathered = 0.0 if ranks == 1 and number == 4 else number * 3 * shape.layer_parameters
    gathered += 0.0 if ranks == 1 and number == 4 else number * 2 * shape.end_parameters
    return Estimate(
        states=16.0 * shape.parameters / ranks,
        reference=float(number * shape.parameters / ranks) if reference else 0.0,
        gathered=gathered,
        activations=float(tokens * kept),
        logits=16.0 * max(logit_elements, shape.vocabulary),
    )


def table(lengths: tuple[int, ...] = (8192, 16_384, 40_960), ranks: tuple[int, ...] = (1, 8, 32)) -> str:
    """The estimates for `MODEL_SHAPES` as Markdown, GiB a GPU, with activation checkpointing in bf16."""
    lines = [
        "| model | GPUs | " + " | ".join(f"{length:,} tokens" for length in lengths) + " |",
        "|---|---|" + "---|" * len(lengths),
    ]
    for name, shape in MODEL_SHAPES.items():
        for count in ranks:
            cells = [f"{estimate(shape, count, length).total / GIB:.0f}" for length in lengths]
            lines.append(f"| {name} | {count} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
