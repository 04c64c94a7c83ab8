"""Families of models in vLLM: its log-probabilities are the trainer's, before and after an update of the weights."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import torch

from curation.policies.completions import TokenCompletion
from tests.places import in_gate
from tests.training.families import FAMILIES, IN_VLLM, make_family
from tests.training.optimisation.packed import pack_samples
from tests.training.vllm_running import Running, running
from tests.vllm_servers import skip_without_vllm
from training.config import PackingSettings
from training.generation.checkpoint_tensors import read_tensors
from training.optimisation.logprobs import PackedPolicy
from training.optimisation.model import load_model, load_tokenizer, save_model, to_checkpoint_names
from training.optimisation.packing import TrainingSample

pytestmark = [pytest.mark.vllm, pytest.mark.slow, in_gate("training/in-vllm"), pytest.mark.usefixtures("one_thread")]

PACKING = PackingSettings(micro_batch_tokens=512)
TOLERANCES = {"float32": 1e-3, "bfloat16": 0.3}


def sampled(engine: Running) -> list[TokenCompletion]:
    """Responses that are longer than the windows."""

    async def ask() -> list[TokenCompletion]:
        asked = [engine.generator.generate([1, 40, 41, 42, 50 + n], seed=n, max_tokens=24) for n in range(6)]
        return await asyncio.gather(*asked)

    return engine.run(ask())


def largest_difference(folder: Path, made: list[TokenCompletion]) -> float:
    policy, worst = PackedPolicy(load_model(folder)), 0.0
    drawn = [TrainingSample(one.prompt_ids, one.token_ids, one.logprobs, 0.0, 0.0) for one in made]
    for batch in pack_samples(drawn, PACKING):
        with torch.no_grad():
            found = policy(batch).logprobs
        worst = max(worst, float((found - batch.generator_logprobs).abs().max()))
    return worst


@torch.no_grad()
def trained(folder: Path, to: Path) -> Any:
    model, chance = load_model(folder), torch.Generator().manual_seed(3)
    for value in model.parameters():
        value.add_(torch.randn(value.shape, generator=chance) * value.std().nan_to_num(0.1).clamp(min=0.02))
    save_model(model, load_tokenizer(folder), to)
    return model


@pytest.mark.parametrize("family", IN_VLLM)
def test_vllm_loads_it_and_takes_new_weights(family: str, tmp_path: Path) -> None:
    skip_without_vllm()
    if "text" in FAMILIES[family]:
        pytest.importorskip("torchvision", reason="vLLM loads models that see only where torchvision is")
    dtype, close = IN_VLLM[family], TOLERANCES[IN_VLLM[family]]
    first, second = make_family(family, tmp_path / "made"), tmp_path / "first"
    save_model(load_model(first), load_tokenizer(first), second)  # vLLM loads what we save
    model = trained(second, tmp_path / "second")
    with running(second, tmp_path / "server.log", dtype) as engine:
        made = sampled(engine)
        assert largest_difference(second, made) < close
        assert largest_difference(tmp_path / "second", made) > 2 * close
        engine.run(engine.generator.update_weights(to_checkpoint_names(model, model.state_dict()), 1))
        made = sampled(engine)
        assert largest_difference(tmp_path / "second", made) < close
        assert largest_difference(second, made) > 2 * close
        engine.run(engine.generator.update_weights(dict(read_tensors(second)), 2))
        assert largest_difference(second, sampled(engine)) < close
