"""Weights that are tied, exchanged while an engine runs: a fault that `training.generation.vllm_worker` corrects.

Exchanges in training are tested in tests/training/generation/test_vllm_generators.py.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from curation.config import Decoding
from curation.policies.vllm import Vllm
from tests.curation.policies.conftest import asked, tiny_settings
from tests.curation.policies.test_vllm import drawn_tokens, expected_logprobs
from tests.curation.policies.tiny_llama import make_tiny_llama
from training.generation.weight_transfer import FOLDER_TRANSFER, WORKER
from training.generation.weight_updates import WeightUpdates

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


def tied(folder: Path, seed: int) -> Path:
    """The tiny Llama, its output layer tied to its embedding."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(make_tiny_llama(folder, seed))
    model.config.tie_word_embeddings = True
    model.lm_head.weight = model.model.embed_tokens.weight
    model.save_pretrained(folder)
    return folder


def test_a_tied_output_layer_changes_with_the_weights(tmp_path: Path) -> None:
    pytest.importorskip("vllm")
    tied(tmp_path / "first", 1)
    tied(tmp_path / "second", 2)

    async def before_and_after() -> None:
        decoding = Decoding(temperature=1.0, top_p=1.0, max_tokens=32, seed=5)
        policy = Vllm(tiny_settings("first", decoding=decoding), tmp_path)
        policy.engine.launch = replace(policy.engine.launch, transfer=FOLDER_TRANSFER, worker=WORKER)
        async with policy:
            updates = WeightUpdates(policy.engine, tmp_path / "first")
            for name in ("first", "second"):
                if name == "second":
                    await updates.update(tmp_path / name, 1)
                made = await drawn_tokens(policy)
                expected = expected_logprobs(tmp_path / name, policy._tokens(asked()), made, decoding)
                assert made.logprobs == pytest.approx(expected, abs=1e-3)

    asyncio.run(before_and_after())
