"""Packed against unpacked on a tiny, random Llama; the output layer in bf16; the estimate of memory."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

from curation.records import ConfigError
from tests.places import ROOT
from tests.training.optimisation.packed import pack_samples
from training.config import PackingSettings
from training.objectives.base import ObjectiveInputs
from training.objectives.credit import token_weights
from training.objectives.grpo import GrpoSettings, grpo_loss
from training.optimisation.attention import PackedLayout, packed_attention, register_packed_attention
from training.optimisation.logprobs import PackedPolicy, token_scores
from training.optimisation.memory import GIB, LOGIT_ELEMENTS, MODEL_SHAPES, ModelShape, estimate_memory
from training.optimisation.packing import MicroBatch, TrainingSample, collate

VOCABULARY = 61
TEMPERATURE = 0.8


def llama() -> Any:
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32}
    config = LlamaConfig(vocab_size=VOCABULARY, intermediate_size=48, initializer_range=0.3, **sizes)
    return LlamaForCausalLM(config).float().eval()


def some_samples(count: int = 9, seed: int = 1) -> list[TrainingSample]:
    chance = random.Random(seed)
    lengths = [chance.randint(1, 20) for _ in range(count)]
    groups = torch.tensor([index // 3 for index in range(count)])
    weights = token_weights(torch.tensor(lengths), groups, "group").tolist()
    return [
        TrainingSample(
            prompt_ids=[chance.randrange(VOCABULARY) for _ in range(chance.randint(1, 12))],
            response_ids=[chance.randrange(VOCABULARY) for _ in range(length)],
            generator_logprobs=[chance.uniform(-5, -3) for _ in range(length)],
            advantage=chance.uniform(-2, 2),
            token_weight=weight,
        )
        for length, weight in zip(lengths, weights, strict=True)
    ]


def some_groups(count: int = 9, seed: int = 1) -> list[TrainingSample]:
    """The same with one prompt for every three."""
    made = some_samples(count, seed)
    return [replace(one, prompt_ids=made[index // 3 * 3].prompt_ids) for index, one in enumerate(made)]


def unpacked(samples: list[TrainingSample]) -> tuple[float, dict[str, Tensor]]:
    """The loss and its gradients of sequences alone, through the model's own attention and all its logits."""
    model, whole = llama(), 0.0
    for sample in samples:
        tokens, start = torch.tensor([[*sample.prompt_ids, *sample.response_ids]]), len(sample.prompt_ids) - 1
        logits = model(input_ids=tokens, use_cache=False).logits[0, start:-1] / TEMPERATURE
        logprobs = logits.log_softmax(-1).gather(-1, tokens[0, start + 1 :, None])[:, 0]
        own, index = torch.tensor(sample.generator_logprobs), torch.zeros(len(sample.response_ids), dtype=torch.int64)
        weighed = torch.tensor([sample.advantage]), torch.tensor([sample.token_weight])
        loss, _ = grpo_loss(ObjectiveInputs(logprobs, own, index, *weighed), GrpoSettings())
        loss.backward()
        whole += loss.item()
    return whole, {name: parameter.grad for name, parameter in model.named_parameters()}


def packed(
    samples: list[TrainingSample], settings: PackingSettings, logit_elements: int = LOGIT_ELEMENTS
) -> tuple[float, dict[str, Tensor]]:
    policy, whole = PackedPolicy(llama(), TEMPERATURE, logit_elements=logit_elements), 0.0
    for batch in pack_samples(samples, settings):
        weighed = batch.advantages, batch.token_weights, batch.mask
        inputs = ObjectiveInputs(policy(batch).logprobs, batch.generator_logprobs, batch.sequence_index, *weighed)
        loss, _ = grpo_loss(inputs, GrpoSettings())
        loss.backward()
        whole += loss.item()
    return whole, {name: parameter.grad for name, parameter in policy.model.named_parameters()}


@pytest.mark.parametrize("rows", [1, 4])
def test_chunks_give_the_scores_and_gradients_of_the_whole(rows: int) -> None:
    chance = torch.Generator().manual_seed(0)
    hidden = torch.randn(11, 8, generator=chance, dtype=torch.float32)
    targets = torch.randint(0, VOCABULARY, (11,), generator=chance)
    head = torch.nn.Linear(8, VOCABULARY)
    slope = torch.randn(11, generator=chance)

    def graded(chunked: bool) -> list[Tensor]:
        states = hidden.clone().requires_grad_()
        if chunked:
            logprobs, entropy = token_scores(states, targets, head, 0.7, rows, "gradient")
            assert entropy is not None
        else:
            scaled = (head(states) / 0.7).log_softmax(-1)
            logprobs, entropy = scaled.gather(-1, targets[:, None])[:, 0], -(scaled.exp() * scaled).sum(-1)
        loss = (slope * logprobs + slope.flip(0) * entropy).sum()
        return [logprobs, entropy, *torch.autograd.grad(loss, [states, head.weight, head.bias])]

    for found, wanted in zip(graded(True), graded(False), strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


class Largest(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, Tensor) and tensor.ndim and tensor.shape[-1] == VOCABULARY:
                self.seen = max(self.seen, tensor.numel())
        return out


def test_no_tensor_of_tokens_times_vocabulary_exists() -> None:
    policy = PackedPolicy(llama(), logit_elements=6 * VOCABULARY)
    batch = collate(some_samples(), tuple(range(9)))
    assert len(batch.targets) > 60
    with Largest() as largest:
        policy(batch, "value").logprobs.sum().backward()
    weight = policy.model.get_output_embeddings().weight
    assert VOCABULARY < largest.seen <= max(6 * VOCABULARY, weight.numel())
    assert weight.numel() < len(batch.targets) * VOCABULARY


def test_in_bf16_the_output_layers_gradient_is_added_up_in_fp32_and_rounded_once() -> None:
    """It is that of the summed log-probabilities: each logit as bf16 has it, then multiplied and added up in fp64."""
    model, batch = llama().bfloat16(), collate(some_samples(), tuple(range(9)))
    PackedPolicy(model, TEMPERATURE)  # its attention
    with torch.no_grad():
        hidden = model.base_model(
            input_ids=batch.input_ids[None],
            position_ids=batch.position_ids[None],
            use_cache=False,
            layout=PackedLayout(batch.cu_seqlens, batch.max_seqlen, batch.unrolled, batch.packed),
        ).last_hidden_state[0, batch.logit_positions]
        of_logits = -(model.lm_head(hidden).float() / TEMPERATURE).softmax(-1)
        of_logits.scatter_add_(1, batch.targets[:, None], torch.ones(len(batch.targets), 1))
        wanted = (of_logits / TEMPERATURE).bfloat16().double().T @ hidden.double()
    for elements in (VOCABULARY, 10**6):  # a chunk a row, as a large vocabulary has it, and all at once
        model = llama().bfloat16()
        PackedPolicy(model, TEMPERATURE, logit_elements=elements)(batch).logprobs.sum().backward()
        found = model.lm_head.weight.grad
        assert found.dtype == torch.bfloat16
        assert ((found.double() - wanted).abs() <= wanted.abs() * 2**-8 + 1e-6).all()


def test_what_the_attention_or_the_logits_do_that_is_not_known_is_refused() -> None:
    model = llama()
    model.set_attn_implementation(register_packed_attention())
    with pytest.raises(ValueError, match="PackedPolicy"):  # no boundaries of sequences
        model(input_ids=torch.tensor([[1, 2, 3]]))
    model.config.logit_scale = 0.5
    with pytest.raises(ConfigError, match="logit_scale"):
        PackedPolicy(model)
    tensors = [torch.randn(1, 2, 3, 4) for _ in range(3)]
    layout = PackedLayout(torch.tensor([0, 3], dtype=torch.int32), 3)
    for said, more in (
        ("position_bias", {"position_bias": tensors[0]}),
        ("later tokens", {"is_causal": False}),
        ("dropout", {"dropout": 0.1}),
    ):
        with pytest.raises(ConfigError, match=said):
            packed_attention(torch.nn.Identity(), *tensors, None, layout=layout, **more)


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
