"""The engine: prompts that were run lately are copied, not for longer than their weights; rows move together."""

from __future__ import annotations

from pathlib import Path
from random import Random

import torch
from transformers import PreTrainedModel

from training.generation.batched_decoding import DecodingEngine, DecodingRequest
from training.optimisation.model import load_model


def engine(folder: Path, slots: int) -> DecodingEngine:
    model = load_model(folder)
    model.requires_grad_(False)
    return DecodingEngine(model, [2], slots=slots, temperature=1.0, top_p=1.0)


def asked(number: int, length: int = 5, max_tokens: int = 12) -> DecodingRequest:
    return DecodingRequest(tuple(range(10 + number, 10 + number + length)), max_tokens, Random(number))


def finish(made: DecodingEngine, joining: list[DecodingRequest]) -> None:
    made.step(joining)
    while made.active:
        made.step()


def off(model: PreTrainedModel, said: DecodingRequest) -> float:
    """Largest difference of the log-probabilities from those of one pass over the whole sequence."""
    ids = torch.tensor([[*said.prompt_ids, *said.token_ids]])
    with torch.inference_mode():
        logprobs = model(ids).logits[0, len(said.prompt_ids) - 1 : -1].log_softmax(-1)
    wanted = logprobs.gather(-1, ids[0, len(said.prompt_ids) :, None])[:, 0]
    return float((torch.tensor(said.logprobs) - wanted).abs().max())


def test_more_prompts_than_are_remembered_and_some_again(random_model: Path) -> None:
    made = engine(random_model, slots=24)  # remembers 3 prompts
    first = [asked(number % 9, 3 + number % 9) for number in range(12)]
    made.step(first)
    again = [asked(number, 3 + number) for number in (0, 8, 2)]
    finish(made, again)
    assert max(off(made.model, said) for said in (*first, *again)) < 1e-4
    assert all(len(said.versions) == len(said.token_ids) == len(said.logprobs) for said in (*first, *again))
    assert first[0].token_ids == again[0].token_ids  # the same prompt and seed, joined later


def test_a_prompt_is_run_again_after_new_weights(random_model: Path, other_model: Path) -> None:
    made, other = engine(random_model, slots=4), load_model(other_model)
    before, after = asked(1, max_tokens=40), asked(1, max_tokens=6)
    made.step([before])
    made.step()
    made.load(dict(other.named_parameters()), 7)
    finish(made, [after])
    assert off(other, after) < 1e-4
    assert after.versions == [7] * len(after.token_ids)
    assert before.versions == [0, 0] + [7] * (len(before.token_ids) - 2)
