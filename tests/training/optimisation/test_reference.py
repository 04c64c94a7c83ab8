"""The KL term in use: 0 before the first step, held down by its weight, and against the same model after a resume."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import torch

from curation.records import ConfigError, StoreError
from tests.training.optimisation.test_trainer import recipe, samples, solo
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


def measured(drawn: list[TrainingSample], **objective: object) -> list[float]:
    settings = GrpoSettings.model_validate(objective)
    trainer = held(**objective)
    return [trainer.step(drawn, settings).statistics["kl_reference"].value for _ in range(8)]


def test_before_the_first_step_the_reference_says_exactly_what_the_policy_says(drawn: list[TrainingSample]) -> None:
    trainer = held()
    assert trainer.reference is not None
    for part in pack_samples(drawn, recipe().packing):
        with torch.no_grad():
            own = trainer.policy(part).logprobs
        assert torch.equal(trainer.reference.logprobs(part), own)
    assert not any(value.requires_grad for value in trainer.reference.policy.parameters())


def test_the_policy_leaves_the_reference_and_less_so_under_a_larger_weight(drawn: list[TrainingSample]) -> None:
    loose, firm, firmer = (measured(drawn, kl_coef=weight) for weight in (1e-6, 0.3, 3.0))
    for kept in (loose, firm, firmer):
        assert kept[0] == 0
        assert min(kept[1:]) > 0
    assert sum(loose) > 1.2 * sum(firm) > 2.4 * sum(firmer)


def test_micro_batches_and_chunks_do_not_change_the_kl(drawn: list[TrainingSample]) -> None:
    settings = GrpoSettings(kl_coef=0.5)
    whole = held(kl_coef=0.5)
    cut = solo(optim={"warmup_steps": 0, "learning_rate": 1e-4}, packing={"micro_batch_tokens": 64})
    cut.policy._elements = 5000
    cut.reference = whole.reference
    for _ in range(2):
        one, two = whole.step(drawn, settings), cut.step(drawn, settings)
    assert two.micro_batches > one.micro_batches
    assert two.loss == pytest.approx(one.loss, abs=1e-6)
    assert two.statistics["kl_reference"].value == pytest.approx(one.statistics["kl_reference"].value, rel=1e-2)


def test_without_it_there_is_no_reference_and_no_number() -> None:
    trainer = solo()
    assert trainer.reference is None
    assert "kl_reference" not in trainer.step(samples(), GrpoSettings()).statistics


def test_sharded_in_bf16_it_says_the_same(drawn: list[TrainingSample]) -> None:
    made = recipe(compute={"dtype": "bfloat16"}, objective={"kl_coef": 0.5}, optim={"warmup_steps": 0})
    ranks = DistributedContext(made.compute)
    try:
        trainer = Trainer(WEIGHTS, made, ranks)
        trainer.reference = ReferencePolicy(WEIGHTS, made, ranks, trainer.model.config.vocab_size)
        assert {value.dtype for value in trainer.reference.policy.parameters()} == {torch.bfloat16}
        kept = [trainer.step(drawn, made.objective).statistics["kl_reference"].value for _ in range(3)]
    finally:
        ranks.close()
    assert kept[0] == 0
    assert kept[2] > 0


def test_a_model_of_another_vocabulary_is_refused() -> None:
    made = recipe()
    with pytest.raises(ConfigError, match=r"has \d+ tokens, the policy 7"):
        ReferencePolicy(WEIGHTS, made, DistributedContext(made.compute), 7)


def test_a_checkpoint_knows_its_reference(tmp_path: Path, random_model: Path, drawn: list[TrainingSample]) -> None:
    settings, trainer = GrpoSettings(kl_coef=0.5), held(kl_coef=0.5)
    trainer.step(drawn, settings)
    save_checkpoint(tmp_path, 1, trainer, {}, load_tokenizer(WEIGHTS), keep=1)
    wanted = trainer.step(drawn, settings).statistics["kl_reference"].value
    checkpoint = last_checkpoint(tmp_path)
    assert checkpoint is not None
    again = held(kl_coef=0.5)
    restore_trainer(checkpoint, again)
    assert again.step(drawn, settings).statistics["kl_reference"].value == wanted > 0
    other = held(random_model, kl_coef=0.5)
    with pytest.raises(StoreError, match="reference"):
        restore_trainer(checkpoint, other)


def weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def test_a_reference_that_follows_is_the_mean_of_the_policys_past(drawn: list[TrainingSample]) -> None:
    table = {"kl_coef": 0.1, "reference_ema": 0.75}
    trainer = held(**table)
    assert trainer.reference is not None
    expected = weights(trainer.reference.policy)
    for _ in range(3):
        trainer.step(drawn, GrpoSettings.model_validate(table))
        now = weights(trainer.policy)
        expected = {name: 0.75 * value + 0.25 * now[name] for name, value in expected.items()}
    found = weights(trainer.reference.policy)
    assert all(torch.allclose(found[name], value, atol=1e-7) for name, value in expected.items())
    assert any(not torch.equal(value, now[name]) for name, value in found.items())


def test_a_reference_that_keeps_nothing_of_itself_holds_nothing_back(drawn: list[TrainingSample]) -> None:
    free, followed = held(), held(kl_coef=5.0, reference_ema=0.0)
    frozen = held(kl_coef=5.0)
    for _ in range(3):
        free.step(drawn, GrpoSettings())
        followed.step(drawn, GrpoSettings(kl_coef=5.0, reference_ema=0.0))
        frozen.step(drawn, GrpoSettings(kl_coef=5.0))
    mine, theirs = weights(followed.policy), weights(free.policy)
    assert all(torch.equal(value, theirs[name]) for name, value in mine.items())
    assert any(not torch.equal(value, theirs[name]) for name, value in weights(frozen.policy).items())


def test_a_checkpoint_holds_a_reference_that_follows(drawn: list[TrainingSample], tmp_path: Path) -> None:
    table = {"kl_coef": 0.5, "reference_ema": 0.9}
    settings = GrpoSettings.model_validate(table)
    first, second = held(**table), held(**table)
    for _ in range(2):
        first.step(drawn, settings)
    first.save(tmp_path / "weights")
    second.load(tmp_path / "weights", first.steps_taken)
    assert first.reference is not None
    assert second.reference is not None
    kept, read = weights(first.reference.policy), weights(second.reference.policy)
    assert all(torch.equal(value, read[name]) for name, value in kept.items())
    assert first.step(drawn, settings).loss == second.step(drawn, settings).loss
