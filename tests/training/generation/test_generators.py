"""Generators: weights exchanged in mid-generation, aborts, and errors that say what happened."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest
import torch

from curation.policies.completions import TokenCompletion
from curation.records import PolicyError
from tests.embedded_model.make import make_tokenizer
from tests.waiting import until
from training.generation.generators import TorchGenerator
from training.optimisation.model import load_model, save_model

A, B = 301, 402
GAP = {A: 15.0, B: 16.0}
LONG = 600


@pytest.fixture(scope="module")
def sayers(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Two models of one architecture: one nearly always says A, the other B, whatever was said before."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = make_tokenizer(seed=5, texts=300)
    folders = {}
    for token, gap in GAP.items():
        torch.manual_seed(0)
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=len(tokenizer),
                hidden_size=16,
                intermediate_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                num_key_value_heads=2,
                max_position_embeddings=1024,
                tie_word_embeddings=False,
                eos_token_id=tokenizer.eos_token_id,
            )
        )
        with torch.no_grad():
            model.model.embed_tokens.weight.fill_(1.0)
            model.model.layers[0].self_attn.o_proj.weight.zero_()
            model.model.layers[0].mlp.down_proj.weight.zero_()
            model.lm_head.weight.zero_()
            model.lm_head.weight[token] = gap / 16  # the last hidden state is 16 ones
        folders[token] = tmp_path_factory.mktemp("sayers") / str(token)
        save_model(model, tokenizer, folders[token])
    return folders


def logprob(token: int) -> float:
    """Of what a model nearly always says."""
    return -math.log1p(639 * math.exp(-GAP[token]))


async def said_by(generator: TorchGenerator, tokens: int) -> None:
    """Return once the first request has said so much."""
    engine = generator._running()
    await until(lambda: engine.active and len(engine.active[0].token_ids) >= tokens, tick_s=0.001)


def test_weights_change_in_the_middle_of_an_attempt(sayers: dict[int, Path]) -> None:
    async def run() -> TokenCompletion:
        async with TorchGenerator(sayers[A]) as generator:
            request = asyncio.create_task(generator.generate([1, 2, 3], seed=4, max_tokens=LONG))
            await said_by(generator, 5)
            assert await generator.update_weights(load_model(sayers[B]).state_dict(), 7) > 0
            return await request

    made = asyncio.run(run())
    assert len(made.token_ids) == len(made.versions) == len(made.logprobs) == LONG
    change = made.versions.index(7)
    assert 5 <= change < LONG
    assert set(made.versions[:change]) == {0}
    assert set(made.versions[change:]) == {7}
    assert made.token_ids == (A,) * change + (B,) * (LONG - change)
    assert made.logprobs[:change] == pytest.approx([logprob(A)] * change, abs=1e-5)  # float32 near 15 and 16
    assert made.logprobs[change:] == pytest.approx([logprob(B)] * (LONG - change), abs=1e-5)  # float32 near 15 and 16
    assert logprob(B) != pytest.approx(logprob(A), rel=0.5)
    assert made.finish == "length"


def test_what_does_not_fit_is_refused_and_generation_goes_on_until_it_is_closed(sayers: dict[int, Path]) -> None:
    async def run() -> None:
        async with TorchGenerator(sayers[A]) as generator:
            with pytest.raises(PolicyError, match="do not fit"):
                await generator.update_weights({"strange": torch.zeros(1)}, 1)
            with pytest.raises(PolicyError, match="1024"):
                await generator.generate([1] * 1024, seed=1, max_tokens=1)
            assert (await generator.generate([1, 2], seed=1, max_tokens=2)).versions == (0, 0)
            waiting = asyncio.create_task(generator.generate([1, 2], seed=1, max_tokens=LONG))
            await said_by(generator, 2)
        with pytest.raises(PolicyError, match="closed"):
            await waiting
        with pytest.raises(PolicyError, match="closed"):
            await generator.generate([1], seed=1, max_tokens=1)

    asyncio.run(run())
