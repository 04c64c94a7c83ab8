"""Generators: weights exchanged in mid-generation, aborts, and errors that say what happened."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import torch

from curation.policies.completions import TokenCompletion
from curation.records import PolicyError
from tests.training.vllm_running import logprobs_by_version
from tests.waiting import until
from training.generation.generators import TorchGenerator
from training.optimisation.model import load_model

LONG = 240


async def said_by(generator: TorchGenerator, tokens: int) -> None:
    """Return once the first request has said so much."""
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
