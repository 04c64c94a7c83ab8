"""The KL term in use: 0 before the first step, held down by its weight, and against the same model after a resume."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import torch

from curation.records import ConfigError, StoreError
from tests.training.optimisation.test_trainer import recipe, solo
from training.embedded_model import WEIGHTS
from training.generation.generators import TorchGenerator
from training.objectives.grpo import GrpoSettings
from training.optimisation.checkpoint import last_checkpoint, restore_trainer, save_checkpoint
from training.optimisation.collating import pack_samples
from training.optimisation.distributed import DistributedContext
from training.optimisation.model import load_tokenizer
from training.optimisation.packing import TrainingSample
from training.optimisation.reference import ReferencePolicy
from training.optimisation.trainer import Trainer

ATTEMPTS = 12


@pytest.fixture(scope="module")
def drawn() -> list[TrainingSample]:
    """Attempts of the embedded model at one sum, good and bad by turns."""
    asked = [{"role": "user", "content": "What is 17 + 25?"}]
    chat = load_tokenizer(WEIGHTS).apply_chat_template(asked, add_generation_prompt=True, return_dict=True)
    prompt = tuple(chat["input_ids"])

    async def made() -> list[TrainingSample]:
        async with TorchGenerator(WEIGHTS, capacity=ATTEMPTS) as generator:
            found = await asyncio.gather(
                *(generator.generate(prompt, seed=seed, max_tokens=40) for seed in range(ATTEMPTS))
            )
        return [
            TrainingSample(one.prompt_ids, one.token_ids, one.logprobs, 1.0 if index % 2 else -1.0, 1 / (40 * ATTEMPTS))
            for index, one in enumerate(found)
        ]

    return asyncio.run(made())


def held(folder: Path = WEIGHTS, **objective: object) -> Trainer:
    """A trainer of the embedded model with a reference."""
    trainer = solo(objective=objective, optim={"warmup_steps": 0, "learning_rate": 1e-4})
    made = recipe()
    ema: Any = objective.get("reference_ema")
    words = trainer.model.config.vocab_size
    trainer.reference = ReferencePolicy(folder, made, DistributedContext(made.compute), words, ema)
    return trainer


def test_before_the_first_step_the_reference_says_exactly_what_the_policy_says(drawn: list[TrainingSample]) -> None:
    trainer = held()
    assert trainer.reference is not None
    for part in pack_samples(drawn, recipe().packing):
        with torch.no_grad():
            own = trainer.policy(part).logprobs
        assert torch.equal(trainer.reference.logprobs(part), own)
    assert not any(value.requires_grad for value in trainer.reference.policy.parameters())


def test_a_model_of_another_vocabulary_is_refused() -> None:
    made = recipe()
    with pytest.raises(ConfigError, match=r"has \d+ tokens, the policy 7"):
        ReferencePolicy(WEIGHTS, made, DistributedContext(made.compute), 7)


def weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def test_a_reference_that_follows_is_the_mean_of_the_policys_past_and_comes_back_from_a_checkpoint(
    drawn: list[TrainingSample], tmp_path: Path
) -> None:
    table = {"kl_coef": 0.5, "reference_ema": 0.75}
    settings = GrpoSettings.model_validate(table)
    trainer, again = held(**table), held(**table)
    assert trainer.reference is not None
    assert again.reference is not None
    expected = weights(trainer.reference.policy)
    for _ in range(2):
        trainer.step(drawn, settings)
        now = weights(trainer.policy)
        expected = {name: 0.75 * value + 0.25 * now[name] for name, value in expected.items()}
    found = weights(trainer.reference.policy)
    assert all(torch.allclose(found[name], value, atol=1e-7) for name, value in expected.items())
    assert any(not torch.equal(value, now[name]) for name, value in found.items())
    trainer.save(tmp_path / "weights")
    again.load(tmp_path / "weights", trainer.steps_taken)
    assert all(torch.equal(found[name], value) for name, value in weights(again.reference.policy).items())
    assert trainer.step(drawn, settings).loss == again.step(drawn, settings).loss


def test_a_checkpoint_of_another_reference_is_refused(
    tmp_path: Path, random_model: Path, drawn: list[TrainingSample]
) -> None:
    trainer = held(kl_coef=0.5)
    trainer.step(drawn, GrpoSettings(kl_coef=0.5))
    save_checkpoint(tmp_path, 1, trainer, {}, load_tokenizer(WEIGHTS), keep=1)
    checkpoint = last_checkpoint(tmp_path)
    assert checkpoint is not None
    with pytest.raises(StoreError, match="reference"):
        restore_trainer(checkpoint, held(random_model, kl_coef=0.5))
