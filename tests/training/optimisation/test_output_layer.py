"""The output layer in fp32 over a model in bf16: exact, the same on both sides, and with gradients."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from curation.policies.completions import TokenCompletion
from curation.policies.vllm.startup import Launch, engine_arguments
from tests.training.optimisation.test_logprobs import TEMPERATURE, VOCABULARY, llama, some_samples
from tests.training.optimisation.test_trainer import recipe, samples
from training.embedded_model import WEIGHTS
from training.generation.generators import TorchGenerator
from training.generation.vllm_generators import VllmGenerator
from training.generation.vllm_settings import VllmGeneratorSettings
from training.objectives.grpo import GrpoSettings
from training.optimisation.attention import attention_kwargs
from training.optimisation.collating import collate
from training.optimisation.distributed import DistributedContext
from training.optimisation.logprobs import PackedPolicy
from training.optimisation.output_layer import set_fp32_head
from training.optimisation.trainer import Trainer

BATCH = collate(some_samples(), tuple(range(9)))


def loud() -> Any:
    """A random Llama in bf16 whose logits are some 50: in bf16 they have steps of 1/4."""
    model = llama().bfloat16()
    with torch.no_grad():
        model.lm_head.weight *= 16
    return model


def hidden_states(model: Any) -> torch.Tensor:
    """[targets, width]: what the output layer is given."""
    hidden: torch.Tensor = model.base_model(
        input_ids=BATCH.input_ids[None],
        position_ids=BATCH.position_ids[None],
        use_cache=False,
        **attention_kwargs(BATCH),
    ).last_hidden_state[0, BATCH.logit_positions]
    return hidden


def exact_head_gradient() -> torch.Tensor:
    """Of the summed log-probabilities: of each logit as bf16 has it, then multiplied and added up in fp64."""
    model = llama().bfloat16()
    PackedPolicy(model, TEMPERATURE)  # its attention
    with torch.no_grad():
        hidden = hidden_states(model)
        probabilities = (model.lm_head(hidden).float() / TEMPERATURE).softmax(-1)
        of_logits = -probabilities
        of_logits.scatter_add_(1, BATCH.targets[:, None], torch.ones(len(BATCH.targets), 1))
        of_logits = (of_logits / TEMPERATURE).bfloat16()
        return of_logits.double().T @ hidden.double()


@pytest.mark.parametrize("elements", [5 * VOCABULARY, 10**6])
def test_log_probabilities_are_those_of_fp32_logits(elements: int) -> None:
    model = loud()
    scored = PackedPolicy(model, TEMPERATURE, "float32", elements)(BATCH, "value")
    hidden = hidden_states(model)
    assert hidden.dtype == torch.bfloat16
    logits = functional.linear(hidden.double(), model.lm_head.weight.double()) / TEMPERATURE
    wanted = logits.log_softmax(-1).gather(-1, BATCH.targets[:, None])[:, 0]
    torch.testing.assert_close(scored.logprobs.double(), wanted, atol=1e-4, rtol=1e-5)
    rounded = PackedPolicy(model, TEMPERATURE, logit_elements=elements)(BATCH).logprobs
    assert (rounded.double() - wanted).abs().max() > 0.05


def test_in_bf16_the_layers_gradient_is_added_up_in_fp32_and_rounded_once() -> None:
    """With a chunk a row, as a large vocabulary has it, the sum is exact up to its last rounding."""

    def gradient(elements: int) -> torch.Tensor:
        model = llama().bfloat16()
        policy = PackedPolicy(model, TEMPERATURE, logit_elements=elements)
        policy(BATCH).logprobs.sum().backward()
        for one in model.parameters():
            assert one.grad is not None
        found: torch.Tensor = model.lm_head.weight.grad
        return found

    by_rows, at_once = gradient(VOCABULARY), gradient(10**6)
    assert by_rows.dtype == torch.bfloat16
    wanted = exact_head_gradient()
    ulp = wanted.abs() * 2**-8 + 1e-6
    assert ((by_rows.double() - wanted).abs() <= ulp).all()
    assert ((at_once.double() - wanted).abs() <= ulp).all()


def test_gradients_reach_the_layer_and_all_below_it() -> None:
    exact, model = llama(), llama().bfloat16()
    for one in (exact, model):
        policy = PackedPolicy(one, TEMPERATURE, "float32", logit_elements=5 * VOCABULARY)
        policy(BATCH).logprobs.mean().backward()
    for (name, one), other in zip(exact.named_parameters(), model.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert (other.grad.float() - one.grad).norm() < 0.25 * one.grad.norm(), name  # bf16 below the layer


def test_a_model_in_fp32_gives_the_same_bytes() -> None:
    plain, other = (PackedPolicy(llama(), 1.0, head)(BATCH).logprobs for head in ("model", "float32"))
    assert torch.equal(plain, other)


def test_the_model_itself_gives_fp32_logits_of_its_present_weights() -> None:
    model, ids = loud().requires_grad_(False), torch.tensor([[1, 2, 3]])
    set_fp32_head(model)
    before = model(input_ids=ids).logits
    hidden = model.base_model(input_ids=ids).last_hidden_state
    assert before.dtype == torch.float32
    torch.testing.assert_close(before, functional.linear(hidden.float(), model.lm_head.weight.float()))
    model.lm_head.weight *= 2
    torch.testing.assert_close(model(input_ids=ids).logits, 2 * before)


def test_the_torch_generator_and_the_trainer_say_the_same_of_a_first_token() -> None:
    """No key or value is read back, so what is left is the output layer."""

    async def ask() -> list[TokenCompletion]:
        async with TorchGenerator(WEIGHTS, dtype="bfloat16", head_dtype="float32") as generator:
            asked = [generator.generate((1, 40 + n, 41), seed=n, max_tokens=1) for n in range(16)]
            return await asyncio.gather(*asked)

    made = asyncio.run(ask())
    bf16 = {"dtype": "bfloat16", "head_dtype": "float32"}
    chosen = recipe(compute=bf16, optim={"warmup_steps": 0})
    ranks = DistributedContext(chosen.compute)
    try:
        trainer = Trainer(WEIGHTS, chosen, ranks)
        drawn = [
            type(one)(done.prompt_ids, done.token_ids, done.logprobs, 1.0, 1 / 16, on_policy=True)
            for one, done in zip(samples(16), made, strict=True)
        ]
        figures = trainer.step(drawn, GrpoSettings())
        assert figures.statistics["mismatch_share"].value == 1
        assert figures.statistics["mismatch_max"].value < 0.05
        scored = trainer.with_old_logprobs(drawn)  # over sharded weights, after a step
        again = trainer.step(scored, GrpoSettings())
        assert again.statistics["log_ratio_max"].value > figures.statistics["log_ratio_max"].value
        assert trainer.with_old_logprobs(drawn) != scored  # by the new weights, not by those gathered before
        assert all(value.dtype == torch.bfloat16 for value in trainer.full_state_dict().values())
    finally:
        ranks.close()


def test_vllm_is_told() -> None:
    settings = VllmGeneratorSettings(kind="vllm")
    told = engine_arguments(Launch("m", "m", 8, head_dtype="float32"), settings, on_cpu=False)
    assert told["hf_overrides"] == {"head_dtype": "float32"}
    assert "hf_overrides" not in engine_arguments(Launch("m", "m", 8), settings, on_cpu=False)


@pytest.mark.vllm
@pytest.mark.slow
def test_vllm_does_as_it_is_told(random_model: Path) -> None:
    pytest.importorskip("vllm")
    settings = VllmGeneratorSettings(kind="vllm", dtype="bfloat16", kv_cache_mb=64)

    async def ask() -> TokenCompletion:
        async with VllmGenerator(random_model, settings, capacity=4, head_dtype="float32") as generator:
            assert generator.engine.vllm.model_config.head_dtype == torch.float32
            return await generator.generate([1, 40, 41], seed=1, max_tokens=8)

    assert len(asyncio.run(ask()).token_ids) == 8
