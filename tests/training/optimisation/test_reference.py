"""The KL term in use: 0 before the first step and over a resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from curation.records import ConfigError, StoreError
from tests.training.optimisation.test_trainer import recipe, samples, solo
from training.embedded_model import WEIGHTS
from training.objectives.grpo import GrpoSettings
from training.optimisation.checkpoint import PendingCheckpoint, last_checkpoint, restore_trainer
from training.optimisation.distributed import DistributedContext
from training.optimisation.model import load_tokenizer
from training.optimisation.scoring import ReferencePolicy
from training.optimisation.trainer import Trainer


def held(folder: Path = WEIGHTS, **objective: Any) -> tuple[Trainer, ReferencePolicy]:
    """Return a trainer of the embedded model with a reference, and that."""
    trainer = solo(objective=objective, optim={"warmup_steps": 0, "learning_rate": 1e-4})
    made, words = recipe(), trainer.model.config.vocab_size
    ranks = DistributedContext(made.compute)
    reference = ReferencePolicy(folder, made, ranks, words)
    trainer.ask(reference)
    return trainer, reference


def weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def test_the_reference_says_what_the_policy_says_until_the_first_step() -> None:
    trainer, reference = held(kl_coef=0.5)
    own, scored = trainer.scorer.logprobs(samples()), reference.scorer.logprobs(samples())
    assert all(torch.equal(first, second) for first, second in zip(own, scored, strict=True))
    before = weights(reference.policy)
    settings = GrpoSettings(kl_coef=0.5)
    kept = [trainer.step(samples(), settings).statistics["kl_reference"].value for _ in range(2)]
    assert kept[0] == 0 < kept[1]
    assert all(torch.equal(value, before[name]) for name, value in weights(reference.policy).items())


def test_a_model_of_another_vocabulary_is_refused() -> None:
    made = recipe()
    with pytest.raises(ConfigError, match=r"has \d+ tokens, the policy 7"):
        ReferencePolicy(WEIGHTS, made, DistributedContext(made.compute), 7)


def test_a_checkpoint_of_another_reference_is_refused(tmp_path: Path, random_model: Path) -> None:
    trainer, _ = held(kl_coef=0.5)
    PendingCheckpoint(tmp_path, 1, trainer, {}, load_tokenizer(WEIGHTS), keep=1).finish()
    checkpoint = last_checkpoint(tmp_path)
    assert checkpoint is not None
    with pytest.raises(StoreError, match="reference"):
        restore_trainer(checkpoint, held(random_model, kl_coef=0.5)[0])
