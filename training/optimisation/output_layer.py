"""The output layer in fp32 where the rest of the model computes in fewer bits.

A logit of 20 has steps of 1/8 in bf16. With `compute.head_dtype = "float32"` hidden states and the layer's weights are
turned into fp32 before they are multiplied, in the trainer, in the reference and in the generator (arXiv 2506.13585,
MiniMax-M1). It helps where both sides do so, and only against this part of the mismatch: with the embedded model in
bf16 on a CPU, |log ratio| fell from 3.7e-3 to 2.9e-3 in the mean with the torch generator, from 8.9e-3 to 7.9e-3 with
vLLM, and KL(generator | trainer) from 5.6e-5 to 3.1e-5, from 2.6e-4 to 2.2e-4; the rest is of the layers below.

Invariants: the weights are those of the computing type, exactly; fp32 has every bf16 number. So trainer and engine
multiply the same numbers, for an engine has no finer weights than those it is sent. In a model that computes in fp32
nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn import functional


def fp32_head(head: Any) -> Callable[[Tensor], Tensor]:
    """Return a function from hidden states [n, width] to logits [n, vocabulary], both in fp32.

    The weights are turned into fp32 once, here, with gradient. They take 4 bytes a number beside the layer's own, and
    so does their gradient.

    Args:
        head: a linear layer, as ``get_output_embeddings`` of a model of transformers returns it.
    """
    weight = head.weight.float()
    bias = head.bias.float() if getattr(head, "bias", None) is not None else None
    return lambda states: functional.linear(states.float(), weight, bias)


def set_fp32_head(model: Any) -> None:
    """Let the model itself compute its logits in fp32, whenever it is called; its weights may change meanwhile."""
    head = model.get_output_embeddings()
    head.forward = lambda states: fp32_head(head)(states)
