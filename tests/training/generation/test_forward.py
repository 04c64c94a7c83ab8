"""The quick forward pass is the model's own: prompts, single tokens, shared heads, biases, weights changed in place."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from training.generation.forward import (
    INITIAL_CAPACITY,
    ForwardPass,
    LlamaForwardPass,
    RowForwardPass,
    forward_pass_for,
)

SIZES: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
}
TURNED = {
    "rope_type": "llama3",
    "rope_theta": 100.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def models() -> dict[str, Any]:
    torch.manual_seed(3)
    made: dict[str, Any] = {
        "llama": LlamaForCausalLM(LlamaConfig(**SIZES)),
        "llama, all biases, tied, wider heads": LlamaForCausalLM(
            LlamaConfig(**SIZES, head_dim=10, attention_bias=True, mlp_bias=True, tie_word_embeddings=True)
        ),
        "llama 3's positions": LlamaForCausalLM(LlamaConfig(**SIZES, rope_parameters=TURNED)),
        "qwen2": Qwen2ForCausalLM(Qwen2Config(**SIZES)),
    }
    for model in made.values():
        model.eval().requires_grad_(False)
        for parameter in model.parameters():
            parameter.normal_(0, 0.3)
    return made


def logits(by: ForwardPass, steps: int) -> torch.Tensor:
    """Of three prompts in rows 5, 0 and 2, then of tokens after them in rows 0 to 2."""
    generator = torch.Generator().manual_seed(4)
    ids = torch.randint(50, (3, 9), generator=generator)
    lengths = torch.tensor([9, 4, 7])
    with torch.inference_mode():
        found = [by.prefill(ids, lengths, torch.tensor([5, 0, 2]))]
        by.copy_rows([5], [1], 9)
        positions = torch.tensor([4, 9, 7])
        for _ in range(steps):
            found.append(by.decode(torch.randint(50, (3,), generator=generator), positions))
            positions = positions + 1
    return torch.stack(found)


@pytest.mark.parametrize("name", list(models()))
def test_quick_logits_are_the_models_own(name: str) -> None:
    model = models()[name]
    wanted = logits(RowForwardPass(model), 12)
    quick = forward_pass_for(model, 6)
    assert isinstance(quick, LlamaForwardPass)
    assert torch.allclose(logits(quick, 12), wanted, atol=1e-4)
    assert wanted.std() > 0.2


def test_the_cache_grows() -> None:
    model = models()["llama"]
    steps = INITIAL_CAPACITY + 20
    wanted = logits(RowForwardPass(model), steps)
    assert torch.allclose(logits(LlamaForwardPass(model, 6), steps), wanted, atol=1e-4)


def test_what_it_does_not_compute_is_left_to_the_model() -> None:
    assert isinstance(forward_pass_for(models()["llama"].to(torch.bfloat16), 6), RowForwardPass)
    assert isinstance(forward_pass_for(models()["llama"].requires_grad_(True), 6), RowForwardPass)
    dynamic = {"rope_type": "dynamic", "rope_theta": 100.0, "factor": 2.0}
    others = (
        LlamaForCausalLM(LlamaConfig(**SIZES, rope_parameters=dynamic)),
        Qwen2ForCausalLM(Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=4, max_window_layers=1)),
    )
    assert not any(LlamaForwardPass.suits(model.requires_grad_(False)) for model in others)
