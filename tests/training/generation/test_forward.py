"""The quick forward pass is the model's own: prompts, single tokens, shared heads, biases, weights changed in place."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from training.generation.forward import (
    INITIAL_CAPACITY,
    ForwardPass,
    KVCache,
    LlamaForwardPass,
    ModelForwardPass,
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
    cache = KVCache(6)
    with torch.inference_mode():
        found = [by.prefill(ids, lengths, torch.tensor([5, 0, 2]), cache)]
        cache.copy_rows([5], [1], 9)
        positions = torch.tensor([4, 9, 7])
        for _ in range(steps):
            found.append(by.decode(torch.randint(50, (3,), generator=generator), positions, cache))
            positions = positions + 1
    return torch.stack(found)


@pytest.mark.parametrize("name", list(models()))
def test_quick_logits_are_the_models_own(name: str) -> None:
    model = models()[name]
    wanted = logits(ModelForwardPass(model), 12)
    quick = forward_pass_for(model)
    assert isinstance(quick, LlamaForwardPass)
    assert torch.allclose(logits(quick, 12), wanted, atol=1e-4)
    assert wanted.std() > 0.2


def test_the_cache_grows_under_both() -> None:
    model = models()["llama"]
    steps = INITIAL_CAPACITY + 20
    assert torch.allclose(logits(LlamaForwardPass(model), steps), logits(ModelForwardPass(model), steps), atol=1e-4)


def test_what_it_does_not_compute_is_left_to_the_model() -> None:
    made = models()["llama"]
    assert isinstance(forward_pass_for(made.to(torch.bfloat16)), ModelForwardPass)
    assert isinstance(forward_pass_for(models()["llama"].requires_grad_(True)), ModelForwardPass)
    dynamic = {"rope_type": "dynamic", "rope_theta": 100.0, "factor": 2.0}
    assert not LlamaForwardPass.suits(
        LlamaForCausalLM(LlamaConfig(**SIZES, rope_parameters=dynamic)).requires_grad_(False)
    )
