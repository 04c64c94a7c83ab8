"""Optimiser steps: learning, micro-batches, checkpointed activations, bf16, and gradients that are no number."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.training.students import student
from training.embedded_model import WEIGHTS
from training.objectives.grpo import GrpoSettings
from training.optimisation.distributed import DistributedContext
from training.optimisation.packing import PackingError, TrainingSample
from training.optimisation.trainer import Trainer
from training.recipe import TrainRecipe


def recipe(**changes: Any) -> TrainRecipe:
    table: dict[str, Any] = {
        "name": "test",
        "steps": 3,
        **student(),
        "data": {"kind": "embedded", "problems": 200, "seed": 5},
        "collector": {"group_size": 4, "n_async": 16, "n_batch": 16, "max_staleness": 1},
        "rewards": {"max_length": 100, "language": 0.0},
        "packing": {"micro_batch_tokens": 512},
        "optim": {"learning_rate": 1e-3, "warmup_steps": 2},
    }
    for key, value in changes.items():
        table[key] = {**table.get(key, {}), **value} if isinstance(value, dict) else value
    return TrainRecipe.model_validate(table)


def solo(**changes: Any) -> Trainer:
    made = recipe(**changes)
    return Trainer(WEIGHTS, made, DistributedContext(made.compute))


def samples(count: int = 8, seed: int = 1) -> list[TrainingSample]:
    chance = random.Random(seed)
    return [
        TrainingSample(
            prompt_ids=[1, *(chance.randrange(3, 600) for _ in range(5))],
            response_ids=(words := [chance.randrange(3, 600) for _ in range(chance.randrange(3, 20))]),
            generator_logprobs=[-6.0] * len(words),
            advantage=1.0 if index % 2 else -1.0,
            token_weight=1 / 100,
        )
        for index in range(count)
    ]


def gradient(trainer: Trainer) -> torch.Tensor:
    found = [value.grad for value in trainer.policy.parameters()]
    parts = [part.full_tensor() if hasattr(part, "full_tensor") else part for part in found if part is not None]
    return torch.cat([part.flatten() for part in parts])


def test_figures_are_those_of_the_minibatch() -> None:
    trainer = solo()
    made = [replace(one, mask=[False, *[True] * (len(one.response_ids) - 1)]) for one in samples()]
    figures = trainer.step(made, GrpoSettings())
    assert figures.model_tokens == sum(sample.length for sample in made)
    assert figures.trained_tokens == sum(len(sample.response_ids) - 1 for sample in made)
    assert figures.statistics["entropy"].count == figures.trained_tokens
    assert figures.learning_rate == pytest.approx(5e-4)  # the first of two steps of warm-up
    assert figures.gradient_norm > 0
    assert 0 <= figures.padding_share < 1
    assert figures.shared_prompt_share == 0
    assert figures.statistics["entropy"].value > 0


def test_a_shared_prompt_counts_once_and_changes_nothing() -> None:
    made = [replace(one, prompt_ids=[1, 5, 6, 7]) for one in samples()]
    trainer, apart = solo(), solo(packing={"micro_batch_tokens": 24})
    figures, scattered = (one.step(made, GrpoSettings()) for one in (trainer, apart))
    told = sum(len(one.response_ids) for one in made)
    assert figures.model_tokens == 4 + told
    assert figures.shared_prompt_share == pytest.approx(28 / (32 + told))
    assert scattered.model_tokens > figures.model_tokens
    assert scattered.loss == pytest.approx(figures.loss, abs=1e-6)
    assert torch.allclose(gradient(apart), gradient(trainer), atol=1e-6)


def test_micro_batches_and_checkpointed_activations_do_not_change_the_step() -> None:
    plain, cut, saved = (
        solo(),
        solo(packing={"micro_batch_tokens": 40}),
        solo(compute={"activation_checkpointing": True}),
    )
    figures = [trainer.step(samples(), GrpoSettings()) for trainer in (plain, cut, saved)]
    assert figures[1].micro_batches > figures[0].micro_batches
    for trainer, one in zip((cut, saved), figures[1:], strict=True):
        assert one.loss == pytest.approx(figures[0].loss, abs=1e-6)
        assert torch.allclose(gradient(trainer), gradient(plain), atol=1e-6)


def test_bf16_keeps_fp32_weights_and_gives_bf16_to_the_generators() -> None:
    made = recipe(compute={"dtype": "bfloat16"}, optim={"warmup_steps": 0})
    ranks = DistributedContext(made.compute)
    try:
        trainer = Trainer(WEIGHTS, made, ranks)
        figures = trainer.step(samples(), GrpoSettings())
        plain = solo(optim={"warmup_steps": 0})
        exact = plain.step(samples(), GrpoSettings())
        assert figures.loss == pytest.approx(exact.loss, rel=0.05, abs=1e-3)
        assert all(value.dtype == torch.float32 for value in trainer.policy.parameters())
        assert all(value.dtype == torch.bfloat16 for value in trainer.full_state_dict().values())
        assert trainer.full_state_dict().keys() == plain.full_state_dict().keys()
    finally:
        ranks.close()


def test_a_sample_that_does_not_fit_is_refused() -> None:
    with pytest.raises(PackingError, match="room"):
        solo(packing={"micro_batch_tokens": 8}).step(samples(), GrpoSettings())
