"""The torch policy: exact log-probabilities, seeds, joining and leaving, aborting, other weights."""

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
from curation.records import Domain, PolicyError, PromptRequest
from tests.waiting import until
from training.generation.batched_decoding import sampling_logprobs
from training.generation.torch_policy import PolicySample, TorchPolicy
from training.optimisation.model import load_model

ASKED = [PromptRequest(f"p{n}", "What is " + " + ".join(["7"] * (n + 1)) + "?", Domain.MATH, "en") for n in range(6)]


def with_many_ends(folder: Path, target: Path) -> Path:
    """A copy of the model in which every twelfth token ends a response, so that lengths differ."""
    shutil.copytree(folder, target)
    path = target / "generation_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "eos_token_id": list(range(2, 640, 12))}))
    return target


def policy(folder: Path, in_flight: int = 4, **decoding: Any) -> TorchPolicy:
    values = {"temperature": 1.0, "max_tokens": 40, "seed": 3, **decoding}
    settings = TorchModel(model=str(folder), decoding=Decoding(**values))
    return TorchPolicy(settings, folder.parent, in_flight=in_flight)


async def sampled(made: TorchPolicy, wanted: Sequence[tuple[PromptRequest, int]]) -> list[PolicySample]:
    async with made:
        return list(await asyncio.gather(*(made.sample(problem, index) for problem, index in wanted)))


async def speaking(made: TorchPolicy) -> None:
    """Return once a request has its first token."""
    await until(lambda: any(request.token_ids for request in made._open))


def replayed(folder: Path, said: PolicySample, temperature: float = 1.0, top_p: float = 1.0) -> torch.Tensor:
    """Log-probabilities of the sampled tokens by one pass over the whole sequence."""
    model = load_model(folder)
    ids = torch.tensor([[*said.prompt_ids, *said.token_ids]])
    with torch.inference_mode():
        logits = model(ids).logits[0, len(said.prompt_ids) - 1 : -1]
    return sampling_logprobs(logits, temperature, top_p).gather(-1, ids[0, len(said.prompt_ids) :, None])[:, 0]


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (1.3, 0.8)])
def test_logprobs_are_those_of_a_full_pass(random_model: Path, temperature: float, top_p: float) -> None:
    made = policy(random_model, temperature=temperature, top_p=top_p)
    for said in asyncio.run(sampled(made, [(problem, 0) for problem in ASKED])):
        wanted = replayed(random_model, said, temperature, top_p)
        assert torch.allclose(torch.tensor(said.logprobs), wanted, atol=1e-4)


def test_what_a_request_says_does_not_depend_on_what_runs_beside_it(random_model: Path, tmp_path: Path) -> None:
    folder = with_many_ends(random_model, tmp_path / "model")
    wanted = [(problem, index) for problem in ASKED for index in range(3)]
    together = asyncio.run(sampled(policy(folder, in_flight=5), wanted))
    alone = asyncio.run(sampled(policy(folder, in_flight=1), wanted))
    assert [said.token_ids for said in together] == [said.token_ids for said in alone]
    assert len({said.token_ids for said in together}) == len(wanted)
    assert len({len(said.token_ids) for said in together}) > 5  # rows were freed at different times and given away


def test_temperature_0_takes_the_likeliest_token(random_model: Path) -> None:
    first, second = asyncio.run(sampled(policy(random_model, temperature=0.0), [(ASKED[1], 0), (ASKED[1], 7)]))
    model = load_model(random_model)
    ids = torch.tensor([[*first.prompt_ids, *first.token_ids]])
    with torch.inference_mode():
        best = model(ids).logits[0, len(first.prompt_ids) - 1 : -1].argmax(-1)
    assert first.token_ids == second.token_ids == tuple(best.tolist())
    assert set(first.logprobs) == {0.0}


def test_draws_follow_the_distribution(random_model: Path) -> None:
    drawn = asyncio.run(
        sampled(policy(random_model, in_flight=500, max_tokens=1), [(ASKED[0], n) for n in range(2000)])
    )
    model = load_model(random_model)
    with torch.inference_mode():
        probabilities = model(torch.tensor([drawn[0].prompt_ids])).logits[0, -1].softmax(-1)
    counts = torch.bincount(torch.tensor([said.token_ids[0] for said in drawn]), minlength=len(probabilities))
    spread = (counts - 2000 * probabilities).abs() / (2000 * probabilities).clamp(min=1).sqrt()
    assert probabilities.max() < 0.99
    assert spread.max() < 5


def test_top_p_keeps_the_likeliest_tokens_only() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()
    assert torch.allclose(sampling_logprobs(logits, 1.0, 0.7).exp(), torch.tensor([[0.625, 0.375, 0.0, 0.0]]))
    assert torch.allclose(sampling_logprobs(logits, 1.0, 0.05).exp(), torch.tensor([[1.0, 0.0, 0.0, 0.0]]))


def test_cancelling_aborts_and_the_others_go_on(random_model: Path) -> None:
    async def run() -> tuple[list[Any], int]:
        made = policy(random_model, in_flight=3, max_tokens=100)
        async with made:
            tasks = [asyncio.create_task(made.answer(problem, 0)) for problem in ASKED]
            await speaking(made)
            for task in tasks[:4]:
                task.cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            await made.answer(ASKED[0], 5)
            return done, len(made._open)

    done, still_open = asyncio.run(run())
    assert sum(isinstance(item, asyncio.CancelledError) for item in done) >= 1
    assert all(item.text is not None for item in done[4:])
    assert still_open == 0


def test_a_prompt_longer_than_the_context_is_refused_and_a_response_ends_with_the_context(random_model: Path) -> None:
    long = PromptRequest("long", "What is " + "7 + " * 300 + "1?", Domain.MATH, "en")
    with pytest.raises(PolicyError, match="context is 256"):
        asyncio.run(sampled(policy(random_model), [(long, 0)]))
    fits = PromptRequest("fits", "What is " + "7+" * 118 + "1?", Domain.MATH, "en")
    (said,) = asyncio.run(sampled(policy(random_model, max_tokens=500), [(fits, 0)]))
    assert len(said.prompt_ids) + len(said.token_ids) <= 256
    assert torch.allclose(torch.tensor(said.logprobs), replayed(random_model, said), atol=1e-4)
