"""Sampling with torch: exact log-probabilities, seeds, requests that join and leave, and those that are aborted."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from curation.config import Decoding, TorchModel
from curation.policies.completions import TokenCompletion
from curation.records import Domain, PolicyError, PromptRequest
from tests.waiting import until
from training.generation.batched_decoding import sampling_logprobs
from training.generation.generators import TorchGenerator
from training.generation.torch_policy import TorchPolicy
from training.optimisation.model import load_model

PROMPTS = [[1, *range(40, 44 + 3 * n)] for n in range(6)]


def with_many_ends(folder: Path, target: Path) -> Path:
    """A copy of the model in which every twelfth token ends a response, so that lengths differ."""
    shutil.copytree(folder, target)
    path = target / "generation_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "eos_token_id": list(range(2, 640, 12))}))
    return target


def sampled(
    folder: Path, wanted: Sequence[tuple[list[int], int]], max_tokens: int = 40, **settings: Any
) -> list[TokenCompletion]:
    """Responses to these prompts with these seeds."""

    async def ask() -> list[TokenCompletion]:
        async with TorchGenerator(folder, **{"capacity": 4, **settings}) as generator:
            asked = (generator.generate(prompt, seed=seed, max_tokens=max_tokens) for prompt, seed in wanted)
            return await asyncio.gather(*asked)

    return asyncio.run(ask())


def logits_of(folder: Path, made: TokenCompletion) -> torch.Tensor:
    """Logits of the response's tokens by one pass over the whole sequence."""
    with torch.inference_mode():
        logits: torch.Tensor = load_model(folder)(torch.tensor([[*made.prompt_ids, *made.token_ids]])).logits
    return logits[0, len(made.prompt_ids) - 1 : -1]


def replayed(folder: Path, made: TokenCompletion, temperature: float = 1.0, top_p: float = 1.0) -> torch.Tensor:
    """Log-probabilities of the response's tokens by one pass over the whole sequence."""
    logprobs = sampling_logprobs(logits_of(folder, made), temperature, top_p)
    return logprobs.gather(-1, torch.tensor(made.token_ids)[:, None])[:, 0]


def test_logprobs_are_those_of_a_full_pass(random_model: Path) -> None:
    for made in sampled(random_model, [(one, 3) for one in PROMPTS], temperature=1.3, top_p=0.8):
        wanted = replayed(random_model, made, 1.3, 0.8)
        assert torch.allclose(torch.tensor(made.logprobs), wanted, atol=1e-4)


def test_what_a_request_says_does_not_depend_on_what_runs_beside_it(random_model: Path, tmp_path: Path) -> None:
    folder = with_many_ends(random_model, tmp_path / "model")
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


def test_a_response_ends_with_the_context(random_model: Path) -> None:
    (made,) = sampled(random_model, [([1, *range(40, 270)], 0)], max_tokens=500)
    assert len(made.prompt_ids) + len(made.token_ids) <= 256
    assert torch.allclose(torch.tensor(made.logprobs), replayed(random_model, made), atol=1e-4)


def test_a_prompt_longer_than_the_context_is_refused(random_model: Path) -> None:
    settings = TorchModel(model=str(random_model), decoding=Decoding(temperature=1.0, max_tokens=40))
    long = PromptRequest("long", "What is " + "7 + " * 300 + "1?", Domain.MATH, "en")

    async def ask() -> None:
        async with TorchPolicy(settings, random_model.parent) as policy:
            with pytest.raises(PolicyError, match="context is 256"):
                await policy.answer(long, 0)

    asyncio.run(ask())
