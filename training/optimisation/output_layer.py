"""Add up the output layer's weight gradient in fp32 over chunks, since a bf16 sum loses small parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def accumulating_head(head: Any) -> Callable[[Tensor], Tensor] | None:
    """Return the layer with its weight gradient added up in fp32, and rounded once.

    None if no gradient is needed, weights are fp32, or the layer is not linear.
    """
    plain = isinstance(head, nn.Linear) and head.weight.dtype != torch.float32
    if not plain or not head.weight.requires_grad or not torch.is_grad_enabled():
        return None
    gradient = _Gradient()
    collected: Callable[[Tensor, _Gradient], Tensor] = _Collected.apply
    linear: Callable[[Tensor, Tensor, _Gradient], Tensor] = _Linear.apply
    weight = collected(head.weight, gradient)
    bias = head.bias

    def logits_of_states(states: Tensor) -> Tensor:
        logits = linear(states, weight, gradient)
        return logits if bias is None else logits + bias

    return logits_of_states


class _Gradient:
    """A weight's gradient so far, [out, in] in fp32."""

    def __init__(self) -> None:
        self.total: Tensor | None = None

    def add(self, of_logits: Tensor, states: Tensor) -> None:
        """Add a call's part, from its logits' gradient [n, out] and states [n, in]."""
        if of_logits.device.type == "cuda":  # tensor cores multiply bf16, and add up in fp32
            part = torch.mm(of_logits.t(), states, out_dtype=torch.float32)
        else:
            part = of_logits.t().float() @ states.float()
        self.total = part if self.total is None else self.total.add_(part)


class _Collected(torch.autograd.Function):
    """Return the weight unchanged; its gradient is the sum over all calls."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, gradient: _Gradient) -> Tensor:
        ctx.set_materialize_grads(False)
        ctx.gradient, ctx.dtype = gradient, weight.dtype
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx: Any, _: Tensor | None) -> tuple[Tensor | None, None]:
        total, ctx.gradient.total = ctx.gradient.total, None
        return (None if total is None else total.to(ctx.dtype)), None


class _Linear(torch.autograd.Function):
    """Compute states times weights; add the weight's gradient to `_Gradient`."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, gradient: _Gradient) -> Tensor:
        ctx.save_for_backward(states, weight)
        ctx.gradient = gradient
        return functional.linear(states, weight)

    @staticmethod
    def backward(ctx: Any, of_logits: Tensor) -> tuple[Tensor, None, None]:
        states, weight = ctx.saved_tensors
        ctx.gradient.add(of_logits, states)
        return of_logits @ weight, None, None
