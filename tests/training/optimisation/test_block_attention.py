"""Attention with windows, sinks and soft caps against transformers' own eager attention, outputs and gradients."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from training.optimisation import block_attention as module
from training.optimisation.block_attention import AttentionRule, block_attention

LENGTH, SCALING = 37, 0.4


def tensors() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Queries of four heads, keys and values of two, and sinks; they want gradients."""
    chance = torch.Generator().manual_seed(0)
    shapes = [(3, 4, LENGTH, 8), (3, 2, LENGTH, 8), (3, 2, LENGTH, 8), (4,)]
    query, key, value, sinks = (torch.randn(shape, generator=chance).requires_grad_() for shape in shapes)
    return query, key, value, sinks


def eager(family: str, window: int | None, softcap: float | None) -> tuple[Tensor, ...]:
    """What transformers makes of them, with the mask spelled out, and the gradients."""
    import importlib

    models: Any = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    query, key, value, sinks = tensors()
    own, other = torch.arange(LENGTH)[:, None], torch.arange(LENGTH)
    seen = (other <= own) & (other > own - (window or LENGTH))
    mask = torch.zeros(LENGTH, LENGTH).masked_fill(~seen, float("-inf"))[None, None]
    layer = SimpleNamespace(num_key_value_groups=2, training=False, sinks=sinks)
    more = {"softcap": softcap} if softcap is not None else {}
    output, _ = models.eager_attention_forward(layer, query, key, value, mask, scaling=SCALING, dropout=0.0, **more)
    made: Tensor = output.transpose(1, 2)
    wanted = [query, key, value] + [sinks] * (family == "gpt_oss")
    return made, *torch.autograd.grad((made * made.detach().cos()).sum(), wanted)


def ours(window: int | None, softcap: float | None, *, with_sinks: bool) -> tuple[Tensor, ...]:
    query, key, value, sinks = tensors()
    made = block_attention(query, key, value, AttentionRule(SCALING, window, sinks if with_sinks else None, softcap))
    wanted = [query, key, value] + [sinks] * with_sinks
    return made, *torch.autograd.grad((made * made.detach().cos()).sum(), wanted)


@pytest.mark.parametrize(
    ("family", "window", "softcap", "scores"),
    [  # many blocks of scores, and all in one
        ("gpt_oss", None, None, 1),
        ("gpt_oss", 5, None, 2**24),
        ("gemma2", None, 1.5, 2**24),
        ("gemma2", 17, 1.5, 1),
        ("llama", 1, None, 1),
    ],
)
def test_it_is_transformers_own(
    family: str, window: int | None, softcap: float | None, scores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SCORES", scores)
    monkeypatch.setattr(module, "_FEWEST", 5)
    for found, wanted in zip(
        ours(window, softcap, with_sinks=family == "gpt_oss"), eager(family, window, softcap), strict=True
    ):
        torch.testing.assert_close(found, wanted, atol=2e-6, rtol=1e-5)
