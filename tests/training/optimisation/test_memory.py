"""The memory estimate: parameter counts of published models, what a backward pass keeps, and the page's table."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

from tests.places import ROOT
from training.optimisation.logprobs import PackedPolicy
from training.optimisation.memory import GIB, MODEL_SHAPES, ModelShape, estimate_memory
from training.optimisation.packing import MicroBatch, TrainingSample, collate


def test_parameters_are_those_of_the_published_models() -> None:
    published = {"1.5B": 1.54e9, "7B": 7.62e9, "24B": 23.57e9}
    assert {name: MODEL_SHAPES[name].num_parameters for name in published} == pytest.approx(published, rel=0.01)


def kept_by(model: PreTrainedModel, batch: MicroBatch, *, checkpointing: bool) -> int:
    """Return the bytes that autograd keeps of a forward pass, weights left out."""
    if checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    policy = PackedPolicy(model, logit_elements=1600)
    weights = {one.untyped_storage().data_ptr() for one in model.parameters()}
    saved: list[torch.Tensor] = []

    def keep(one: torch.Tensor) -> torch.Tensor:
        saved.append(one)
        return one

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda one: one):
        policy(batch)
    storages = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one in saved}
    return sum(size for place, size in storages.items() if place not in weights)


def test_what_a_backward_pass_keeps_is_what_is_estimated() -> None:
    """Counted on a CPU: all tensors of a bf16 model, and with checkpointing one input a layer."""
    shape = ModelShape(100, 64, 6, 4, 2, 16, 192)
    samples = [TrainingSample(tuple(range(n, n + 8)), (5,) * 248, (-0.1,) * 248, 1.0, 1.0) for n in (1, 9)]
    batch = collate(samples, (0, 1))
    sizes = {"vocab_size": 100, "hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 6}
    config = LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False)
    whole, spare = (estimate_memory(shape, 1, 512, checkpointing=one).activations for one in (False, True))
    models = [LlamaForCausalLM(config).bfloat16().train() for _ in range(2)]
    held, kept = (kept_by(model, batch, checkpointing=one) for model, one in zip(models, (False, True), strict=True))
    assert held == pytest.approx(whole, rel=0.02)
    inputs = 2 * 512 * shape.hidden_size * shape.num_layers
    ends = 512 * shape.hidden_size * 10  # the last norm's input, its fp32 copies, and its output
    assert inputs <= kept <= inputs + ends
    assert kept < spare  # which has one layer's tensors too, as they are while that layer is computed again


def memory_table(ranks: tuple[int, ...] = (1, 8, 32), lora_rank: int = 0) -> str:
    """Return Markdown of estimates for `MODEL_SHAPES`, in GiB per GPU."""
    lines = ["| model | GPUs | 8,192 tokens | 16,384 tokens | 40,960 tokens |", "|---|---|---|---|---|"]
    for name, shape in MODEL_SHAPES.items():
        for count in ranks:
            found = [estimate_memory(shape, count, length, lora_rank=lora_rank) for length in (8192, 16_384, 40_960)]
            lines.append(f"| {name} | {count} | " + " | ".join(f"{one.total / GIB:.0f}" for one in found) + " |")
    return "\n".join(lines)


def test_the_table_has_a_row_for_each_and_stands_in_the_readme() -> None:
    page = (ROOT / "docs" / "reference" / "memory.md").read_text(encoding="utf-8")
    assert memory_table() in page
    assert memory_table(ranks=(1, 8), lora_rank=16) in page
