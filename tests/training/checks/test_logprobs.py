"""Checks before a run, on tiny real models: generators next to the trainer, and packed next to plain."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import PhiConfig, PhiForCausalLM

from curation.policies.completions import TokenCompletion
from curation.records import PolicyError
from tests.places import IS_WHOLE
from tests.training.families import WINDOW, make_family
from tests.training.optimisation.test_trainer import solo
from tests.training.students import student
from training.checks import CHANGED_VERSION, EXACT, CheckResult, GeneratorChecks, check_packing, probe_samples
from training.generation.checkpoint_tensors import Weights
from training.generation.generators import TorchGenerator
from training.optimisation.trainer import Trainer

ROOM = {"micro_batch_tokens": 4096}
PROMPTS = [[1, 40 + n, 41, 42] for n in range(8)]


class Recorded(TorchGenerator):
    """Notes the versions of its weights; keeps its own values of some, as an engine that does not know their names."""

    kept: Mapping[str, Tensor] = {}

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(folder, capacity=8, **settings)
        self.seen: list[int] = []

    async def update_weights(self, weights: Weights, version: int) -> float:
        self.seen.append(version)
        return await super().update_weights({**weights, **self.kept}, version)


class Dying(Recorded):
    every, asked = 3, 0

    async def generate(self, prompt_ids: Sequence[int], *, seed: int, max_tokens: int) -> TokenCompletion:
        self.asked += 1
        if self.asked % self.every == 0:
            raise PolicyError("the engine is gone")
        return await super().generate(prompt_ids, seed=seed, max_tokens=max_tokens)


def checked(
    trainer: Trainer, generator: TorchGenerator, tolerance: float = EXACT, kind: str = "torch"
) -> list[CheckResult]:
    async def run() -> list[CheckResult]:
        async with generator:
            checks = GeneratorChecks(generator, trainer.scorer, trainer.full_state_dict, PROMPTS, kind, tolerance)
            return await checks.run()

    return asyncio.run(run())


def test_a_generator_agrees_and_nothing_is_different_afterwards(random_model: Path) -> None:
    trainer, generator = solo(random_model, packing=ROOM), Recorded(random_model)
    before = {name: value.clone() for name, value in trainer.full_state_dict().items()}
    for result in checked(trainer, generator):
        assert result.passed
        assert result.figure < EXACT / 50
    assert generator.seen == [CHANGED_VERSION, 0]
    assert all(torch.equal(value, before[name]) for name, value in trainer.full_state_dict().items())


def test_another_temperature_is_refused_and_the_same_is_not(random_model: Path) -> None:
    trainer = solo(random_model, packing=ROOM, **student(decoding={"temperature": 0.7}))
    (other,) = checked(trainer, Recorded(random_model), kind="endpoint")
    assert f"{other.figure:.2g} nats" in other.detail
    assert "start the servers with" in other.advice
    assert all(result.passed for result in checked(trainer, Recorded(random_model, temperature=0.7)))


def test_a_tensor_that_does_not_arrive_is_seen(random_model: Path) -> None:
    trainer, deaf = solo(random_model, packing=ROOM), Recorded(random_model)
    name = "model.layers.1.mlp.down_proj.weight"
    deaf.kept = {name: trainer.full_state_dict()[name].clone()}
    agree, arrive = checked(trainer, deaf, kind="vllm")
    assert agree.passed
    assert arrive.figure > 50 * EXACT
    assert "set the kind of its table to torch" in arrive.advice


def test_single_failures_are_survived_and_a_dead_engine_is_not(random_model: Path) -> None:
    dying = Dying(random_model)
    assert all(result.passed for result in checked(solo(random_model, packing=ROOM), dying))
    dying = Dying(random_model)
    dying.every = 1
    with pytest.raises(PolicyError, match="the engine is gone"):
        checked(solo(random_model, packing=ROOM), dying)


def packing_checked(trainer: Trainer, window: int | None = None) -> CheckResult:
    samples = probe_samples(range(40, 70), range(3, 600), window)
    return check_packing(trainer.scorer, samples, rounded=trainer.ranks.sharded)


@pytest.mark.parametrize(
    "family", ["gpt_oss", "qwen3_next", *(["llama_tied", "qwen3_moe", "gemma3", "lfm2"] if IS_WHOLE else ())]
)
def test_what_is_packed_rightly_passes_far_below_the_tolerance(family: str, tmp_path: Path) -> None:
    result = packing_checked(solo(make_family(family, tmp_path), packing=ROOM), WINDOW)
    assert result.passed
    assert result.figure < EXACT / 50


def test_what_is_random_in_the_forward_pass_is_refused(tmp_path: Path) -> None:
    sizes = {"vocab_size": 640, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}
    config = PhiConfig(**sizes, num_attention_heads=2, initializer_range=0.3, resid_pdrop=0.3)
    PhiForCausalLM(config).save_pretrained(tmp_path)
    packed = packing_checked(solo(tmp_path, packing=ROOM))
    assert not packed.passed
    assert "dropout" in packed.advice
