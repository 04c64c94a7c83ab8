"""Generators next to the trainer, real ones of a tiny model: agreement, other settings, updates that do not arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from curation.policies.completions import TokenCompletion
from curation.records import PolicyError
from tests.training.checks.models import trainer_of
from tests.training.students import student
from training.checks import CHANGED_VERSION, ENGINES, EXACT, CheckResult, GeneratorChecks
from training.generation.checkpoint_tensors import Weights
from training.generation.generators import TorchGenerator
from training.optimisation.trainer import Trainer

PROMPTS = [[1, 40 + n, 41, 42] for n in range(8)]


class Recorded(TorchGenerator):
    """Notes the versions of the weights that it gets."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(folder, capacity=8, **settings)
        self.seen: list[int] = []

    async def update_weights(self, weights: Weights, version: int) -> float:
        self.seen.append(version)
        return await super().update_weights(weights, version)


class Deaf(Recorded):
    """Keeps its own values of one tensor, as an engine whose loader does not know the name."""

    kept: Mapping[str, Tensor]

    async def update_weights(self, weights: Weights, version: int) -> float:
        return await super().update_weights({**weights, **self.kept}, version)


class Dying(Recorded):
    """Fails some requests, or all."""

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
    trainer, generator = trainer_of(random_model), Recorded(random_model)
    before = {name: value.clone() for name, value in trainer.full_state_dict().items()}
    agree, arrive = checked(trainer, generator)
    assert agree.passed
    assert arrive.passed
    assert agree.figure is not None
    assert arrive.figure is not None
    assert max(agree.figure, arrive.figure) < EXACT / 50
    assert generator.seen == [CHANGED_VERSION, 0]
    assert all(torch.equal(value, before[name]) for name, value in trainer.full_state_dict().items())


def test_other_weights_are_refused(random_model: Path, other_model: Path) -> None:
    (agree,) = checked(trainer_of(random_model), Recorded(other_model), tolerance=ENGINES)
    assert agree.figure is not None
    assert agree.figure > 0.5
    assert f"{agree.figure:.2g} nats" in agree.detail
    assert not agree.passed


def test_another_temperature_is_refused_and_the_same_is_not(random_model: Path) -> None:
    trainer = trainer_of(random_model, **student(decoding={"temperature": 0.7}))
    (other,) = checked(trainer, Recorded(random_model), kind="endpoint")
    assert "start the servers with" in other.advice
    assert all(result.passed for result in checked(trainer, Recorded(random_model, temperature=0.7)))


def test_a_tensor_that_does_not_arrive_is_seen(random_model: Path) -> None:
    trainer = trainer_of(random_model)
    name = "model.layers.1.mlp.down_proj.weight"
    deaf = Deaf(random_model)
    deaf.kept = {name: trainer.full_state_dict()[name].clone()}
    agree, arrive = checked(trainer, deaf, kind="vllm")
    assert agree.passed
    assert arrive.figure is not None
    assert arrive.figure > 50 * EXACT
    assert "set the kind of its table to torch" in arrive.advice


def test_single_failures_are_survived_and_a_dead_engine_is_not(random_model: Path) -> None:
    dying = Dying(random_model)
    assert all(result.passed for result in checked(trainer_of(random_model), dying))
    dying = Dying(random_model)
    dying.every = 1
    with pytest.raises(PolicyError, match="the engine is gone"):
        checked(trainer_of(random_model), dying)
