"""Optimiser steps: micro-batches, checkpointed activations, bf16, scores during training, and numbers that are none."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.students import student
from training.config import OptimSettings
from training.embedded_model import WEIGHTS
from training.objectives.base import GroupWeights
from training.objectives.grpo import GrpoSettings
from training.optimisation.distributed import DistributedContext
from training.optimisation.packing import TrainingSample
from training.optimisation.trainer import Trainer, TrainingError, far_share, reweighed
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


def solo(folder: Path = WEIGHTS, **changes: Any) -> Trainer:
    made = recipe(**changes)
    return Trainer(folder, made, DistributedContext(made.compute))


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
    found = [value.grad for value in trainer.policy.parameters() if value.grad is not None]
    return torch.cat(
        [part.full_tensor().flatten() if hasattr(part, "full_tensor") else part.flatten() for part in found]
    )


def test_figures_are_those_of_the_minibatch() -> None:
    trainer = solo()
    made = [replace(one, mask=[False, *[True] * (len(one.response_ids) - 1)]) for one in samples()]
    figures = trainer.step(made, GrpoSettings())
    assert figures.model_tokens == sum(sample.length for sample in made)
    assert figures.trained_tokens == sum(len(sample.response_ids) - 1 for sample in made)
    assert figures.statistics["entropy"].count == figures.trained_tokens
    assert figures.learning_rate == pytest.approx(5e-4)  # the first of two steps of warm-up
    assert figures.gradient_norm > 0
    assert figures.statistics["entropy"].value > 0


def test_the_rate_warms_up_and_stays() -> None:
    settings = OptimSettings(learning_rate=1.0, warmup_steps=4)
    assert [settings.learning_rate_at(step) for step in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    assert OptimSettings(learning_rate=1.0, warmup_steps=0).learning_rate_at(0) == 1.0


def test_a_shared_prompt_micro_batches_and_checkpointed_activations_change_nothing() -> None:
    made = [replace(one, prompt_ids=[1, 5, 6, 7]) for one in samples()]
    trainer, apart = solo(), solo(packing={"micro_batch_tokens": 24})
    saved = solo(compute={"activation_checkpointing": True})
    figures, scattered, spared = (one.step(made, GrpoSettings()) for one in (trainer, apart, saved))
    told = sum(len(one.response_ids) for one in made)
    assert figures.model_tokens == 4 + told
    assert scattered.model_tokens > figures.model_tokens
    assert [scattered.loss, spared.loss] == pytest.approx([figures.loss] * 2, abs=1e-6)
    assert all(torch.allclose(gradient(one), gradient(trainer), atol=1e-6) for one in (apart, saved))


@pytest.mark.slow
def test_bf16_keeps_fp32_weights_gives_bf16_to_the_generators_and_flips_them_there_and_back() -> None:
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
        before, scored = trainer.full_state_dict(), torch.cat(trainer.scorer.logprobs(samples()))
        assert before.keys() == plain.full_state_dict().keys()
        before = {name: value.clone() for name, value in before.items()}
        trainer.scorer.flip_weights()
        assert all(not torch.equal(value, before[name]) for name, value in trainer.full_state_dict().items())
        assert (torch.cat(trainer.scorer.logprobs(samples())) - scored).abs().mean() > 0.2
        trainer.scorer.flip_weights()
        assert all(torch.equal(value, before[name]) for name, value in trainer.full_state_dict().items())
        assert torch.equal(torch.cat(trainer.scorer.logprobs(samples())), scored)
    finally:
        ranks.close()


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (0, "no step was taken yet; look for NaN in its weights"),
        (1, "step broke the weights; .* lower optim.learning_"),
    ],
)
def test_a_broken_model(steps: int, said: str) -> None:
    trainer = solo()
    for _ in range(steps):
        trainer.step(samples(), GrpoSettings())
    with torch.no_grad():
        next(trainer.policy.parameters()).fill_(math.nan)
    with pytest.raises(TrainingError, match=said):
        trainer.step(samples(), GrpoSettings())


def test_an_advantage_that_is_no_number_and_an_overflow_in_the_backward_pass() -> None:
    trainer = solo()
    broken = [replace(one, advantage=math.nan) for one in samples()]
    with pytest.raises(TrainingError, match="the loss nan: an advantage, a weight or a term"):
        trainer.step(broken, GrpoSettings())
    own = [one.tolist() for one in trainer.scorer.logprobs(samples())]
    pairs = zip(samples(), own, strict=True)
    made = [replace(one, generator_logprobs=logprobs, token_weight=1e30) for one, logprobs in pairs]
    with pytest.raises(TrainingError, match=": the backward pass overflows"):
        trainer.step(made, GrpoSettings())


def stored(tokens: int, max_distance: float | None) -> TrainingSample:
    return TrainingSample([1], [5] * tokens, None, 1.0, 0.25, max_distance=max_distance)


def test_a_stored_sample_weighs_nothing_where_its_ratio_is_too_far_either_way() -> None:
    made = [stored(4, 0.5), stored(4, 0.5), stored(4, 0.5), stored(2, 0.5), stored(4, None)]
    sums = [1.9, 2.1, -2.1, 1.9, 50.0]  # half a nat for each of its tokens
    weighed = reweighed(made, sums, GroupWeights(torch.zeros(5, dtype=torch.float64)))
    assert [one.token_weight for one in weighed] == [0.25, 0.0, 0.0, 0.0, 0.25]
    share = far_share(weighed)
    assert (share.reduction, share.value, share.count) == ("mean", 0.75, 4.0)  # the last one was sampled
