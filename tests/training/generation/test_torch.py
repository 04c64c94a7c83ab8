"""Sampling with torch: exact log-probabilities, seeds, requests that join and leave, weights that change, speed-ups."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from curation.config import Decoding, TorchModel
from curation.policies.completions import TokenCompletion
from curation.records import Domain, PolicyError, PromptRequest
from tests.training.vllm_running import logprobs_by_version
from tests.waiting import until
from training.generation.batched_decoding import DecodingEngine, DecodingRequest, sampling_logprobs
from training.generation.forward import (
    INITIAL_CAPACITY,
    ForwardPass,
    LlamaForwardPass,
    RowForwardPass,
    forward_pass_for,
)
from training.generation.generators import TorchGenerator
from training.generation.torch_policy import TorchPolicy
from training.optimisation.model import load_model

PROMPTS = [[1, *range(40, 44 + 3 * n)] for n in range(6)]


def sampled(
    folder: Path, wanted: Sequence[tuple[list[int], int]], max_tokens: int = 40, **settings: Any
) -> list[TokenCompletion]:
    async def ask() -> list[TokenCompletion]:
        async with TorchGenerator(folder, **{"capacity": 4, **settings}) as generator:
            asked = (generator.generate(prompt, seed=seed, max_tokens=max_tokens) for prompt, seed in wanted)
            return await asyncio.gather(*asked)

    return asyncio.run(ask())


def logits_of(folder: Path, made: TokenCompletion | DecodingRequest) -> torch.Tensor:
    """Logits of the response's tokens by one pass over the whole sequence."""
    with torch.inference_mode():
        logits = load_model(folder)(torch.tensor([[*made.prompt_ids, *made.token_ids]])).logits
    return logits[0, len(made.prompt_ids) - 1 : -1]


def replayed(
    folder: Path, made: TokenCompletion | DecodingRequest, temperature: float = 1.0, top_p: float = 1.0
) -> torch.Tensor:
    logprobs = sampling_logprobs(logits_of(folder, made), temperature, top_p)
    return logprobs.gather(-1, torch.tensor(made.token_ids)[:, None])[:, 0]


def test_logprobs_are_those_of_a_full_pass_and_a_response_ends_with_the_context(random_model: Path) -> None:
    for made in sampled(random_model, [(one, 3) for one in PROMPTS], temperature=1.3, top_p=0.8):
        assert torch.allclose(torch.tensor(made.logprobs), replayed(random_model, made, 1.3, 0.8), atol=1e-4)
    (made,) = sampled(random_model, [([1, *range(40, 270)], 0)], max_tokens=500)
    assert len(made.prompt_ids) + len(made.token_ids) <= 256
    assert torch.allclose(torch.tensor(made.logprobs), replayed(random_model, made), atol=1e-4)


def test_what_a_request_says_does_not_depend_on_what_runs_beside_it(random_model: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(random_model, tmp_path / "model")
    path = folder / "generation_config.json"  # every twelfth token ends a response, so that lengths differ
    path.write_text(json.dumps({**json.loads(path.read_text()), "eos_token_id": list(range(2, 640, 12))}))
    wanted = [(prompt, seed) for prompt in PROMPTS for seed in range(3)]
    together, alone = sampled(folder, wanted, capacity=5), sampled(folder, wanted, capacity=1)
    assert [made.token_ids for made in together] == [made.token_ids for made in alone]
    assert len({made.token_ids for made in together}) == len(wanted)
    assert len({len(made.token_ids) for made in together}) > 5  # rows were freed at different times and given away


def test_temperature_0_takes_the_likeliest_token(random_model: Path) -> None:
    first, second = sampled(random_model, [(PROMPTS[1], 0), (PROMPTS[1], 7)], temperature=0.0)
    assert first.token_ids == second.token_ids == tuple(logits_of(random_model, first).argmax(-1).tolist())
    assert set(first.logprobs) == {0.0}


def test_draws_follow_the_distribution(random_model: Path) -> None:
    drawn = sampled(random_model, [(PROMPTS[0], n) for n in range(2000)], max_tokens=1, capacity=500)
    probabilities = logits_of(random_model, drawn[0])[0].softmax(-1)
    counts = torch.bincount(torch.tensor([made.token_ids[0] for made in drawn]), minlength=len(probabilities))
    spread = (counts - 2000 * probabilities).abs() / (2000 * probabilities).clamp(min=1).sqrt()
    assert probabilities.max() < 0.99
    assert spread.max() < 5


def test_top_p_keeps_the_likeliest_tokens_only() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()
    assert torch.allclose(sampling_logprobs(logits, 1.0, 0.7).exp(), torch.tensor([[0.625, 0.375, 0.0, 0.0]]))
    assert torch.allclose(sampling_logprobs(logits, 1.0, 0.05).exp(), torch.tensor([[1.0, 0.0, 0.0, 0.0]]))


def test_cancelling_aborts_and_the_others_go_on(random_model: Path) -> None:
    async def run() -> list[Any]:
        async with TorchGenerator(random_model, capacity=3) as generator:
            engine = generator._running()
            tasks = [asyncio.create_task(generator.generate(one, seed=0, max_tokens=100)) for one in PROMPTS]
            await until(lambda: any(request.token_ids for request in engine.active))
            for task in tasks[:4]:
                task.cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            await generator.generate(PROMPTS[0], seed=5, max_tokens=100)
            assert engine.active == []
            return done

    done = asyncio.run(run())
    assert sum(isinstance(item, asyncio.CancelledError) for item in done) >= 1
    assert all(item.token_ids for item in done[4:])


def test_a_prompt_longer_than_the_context_is_refused(random_model: Path) -> None:
    settings = TorchModel(model=str(random_model), decoding=Decoding(temperature=1.0, max_tokens=40))

    async def ask() -> None:
        async with TorchPolicy(settings, random_model.parent) as policy:
            await policy.answer(PromptRequest("long", "What is " + "7 + " * 300 + "1?", Domain.MATH, "en"), 0)

    with pytest.raises(PolicyError, match="context is 256"):
        asyncio.run(ask())


LONG = 240


async def said_by(generator: TorchGenerator, tokens: int) -> None:
    engine = generator._running()
    await until(lambda: engine.active and len(engine.active[0].token_ids) >= tokens, tick_s=0.001)


def test_weights_change_in_the_middle_of_an_attempt(random_model: Path, other_model: Path) -> None:
    state = load_model(other_model).state_dict()  # loaded first, as the attempt goes on meanwhile

    async def run() -> TokenCompletion:
        async with TorchGenerator(random_model) as generator:
            request = asyncio.create_task(generator.generate([1, 2, 3], seed=4, max_tokens=LONG))
            await said_by(generator, 5)
            assert await generator.update_weights(state, 7) > 0
            return await request

    made = asyncio.run(run())
    change, count = made.versions.index(7), len(made.token_ids)
    assert len(made.versions) == len(made.logprobs) == count > change >= 5
    assert made.versions == (0,) * change + (7,) * (count - change)
    folders, versions = [random_model, other_model], [0] * change + [1] * (count - change)
    wanted = logprobs_by_version([1, 2, 3], list(made.token_ids), versions, folders)
    assert made.logprobs == pytest.approx(wanted, abs=1e-4)


def test_what_does_not_fit_is_refused_and_generation_goes_on_until_it_is_closed(random_model: Path) -> None:
    async def run() -> None:
        async with TorchGenerator(random_model) as generator:
            with pytest.raises(PolicyError, match="do not fit"):
                await generator.update_weights({"strange": torch.zeros(1)}, 1)
            with pytest.raises(PolicyError, match="256"):
                await generator.generate([1] * 256, seed=1, max_tokens=1)
            assert (await generator.generate([1, 2], seed=1, max_tokens=2)).versions == (0, 0)
            waiting = asyncio.create_task(generator.generate([1, 2], seed=1, max_tokens=LONG))
            await said_by(generator, 2)
        with pytest.raises(PolicyError, match="closed"):
            await waiting
        with pytest.raises(PolicyError, match="closed"):
            await generator.generate([1], seed=1, max_tokens=1)

    asyncio.run(run())


def engine_of(folder: Path, slots: int) -> DecodingEngine:
    model = load_model(folder).requires_grad_(False)
    return DecodingEngine(model, [2], slots=slots, temperature=1.0, top_p=1.0)


def asked(number: int, length: int = 5, max_tokens: int = 12) -> DecodingRequest:
    return DecodingRequest(tuple(range(10 + number, 10 + number + length)), max_tokens, Random(number))


def finish(made: DecodingEngine, joining: list[DecodingRequest]) -> None:
    made.step(joining)
    while made.active:
        made.step()


def require_exact(folder: Path, *requests: DecodingRequest) -> None:
    for one in requests:
        assert torch.allclose(torch.tensor(one.logprobs), replayed(folder, one), atol=1e-4)
        assert len(one.versions) == len(one.token_ids) == len(one.logprobs)


def test_more_prompts_than_are_remembered_and_some_again(random_model: Path) -> None:
    made = engine_of(random_model, slots=24)  # remembers 3 prompts
    first = [asked(number % 9, 3 + number % 9) for number in range(12)]
    made.step(first)
    again = [asked(number, 3 + number) for number in (0, 8, 2)]
    finish(made, again)
    require_exact(random_model, *first, *again)
    assert first[0].token_ids == again[0].token_ids  # the same prompt and seed, joined later


def test_a_prompt_is_run_again_after_new_weights(random_model: Path, other_model: Path) -> None:
    made = engine_of(random_model, slots=4)
    before, after = asked(1, max_tokens=40), asked(1, max_tokens=6)
    made.step([before])
    made.step()
    made.load(dict(load_model(other_model).named_parameters()), 7)
    finish(made, [after])
    require_exact(other_model, after)
    assert after.versions == [7] * len(after.token_ids)
    assert before.versions == [0, 0] + [7] * (len(before.token_ids) - 2)


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
    heads = {"head_dim": 10, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}
    made: dict[str, Any] = {
        "llama": LlamaForCausalLM(LlamaConfig(**SIZES)),
        "llama, all biases, tied, wider heads": LlamaForCausalLM(LlamaConfig(**SIZES, **heads)),
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
    model, steps = models()["llama"], INITIAL_CAPACITY + 20
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
