"""A gradient that is no number: the sentence names the cause that the step's statistics show."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from tests.training.optimisation.test_trainer import samples, solo
from training.objectives.grpo import GrpoSettings
from training.objectives.step_statistics import Measure
from training.optimisation.nonfinite import nonfinite_gradient
from training.optimisation.trainer import TrainingError


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (0, "no finite numbers before any step: look for NaN in its weights"),
        (1, r"an earlier step broke the weights; .* lower optim.learning_rate"),
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


def test_an_advantage_that_is_no_number() -> None:
    broken = [replace(one, advantage=math.nan) for one in samples()]
    with pytest.raises(TrainingError, match=r"the loss is nan, while all log-probabilities are finite: an advantage"):
        solo().step(broken, GrpoSettings())


def test_an_overflow_in_the_backward_pass() -> None:
    trainer = solo()
    own = [one.tolist() for one in trainer.scorer.logprobs(samples())]
    made = [
        replace(one, generator_logprobs=logprobs, token_weight=1e30)
        for one, logprobs in zip(samples(), own, strict=True)
    ]
    with pytest.raises(TrainingError, match="close to the generator's: the backward pass overflows"):
        trainer.step(made, GrpoSettings())


def test_a_generator_of_another_model() -> None:
    far = {"kl_generator": Measure("mean", 3.0, 9), "ratio_max": Measure("max", math.exp(15))}
    text = nonfinite_gradient(3, math.inf, 1e30, far)
    assert "optimiser step 3: the gradient's norm is inf, and a token is 3.3e+06 times as likely" in text
    assert 'objective.preset = "dual_clip"' in text
    assert "learning_rate" not in text
