"""Checkpoints and published models: whole or absent, logs cut back, refusals of broken ones, and a reference policy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from curation.records import ConfigError, PolicyError, StoreError
from tests.training.optimisation.test_trainer import recipe, samples, solo
from training.embedded_model import WEIGHTS
from training.generation.checkpoint_tensors import read_tensors
from training.objectives.grpo import GrpoSettings
from training.optimisation.checkpoint import (
    JsonlLog,
    PendingCheckpoint,
    last_checkpoint,
    restore_trainer,
)
from training.optimisation.distributed import DistributedContext
from training.optimisation.model import MARK, load_model, load_tokenizer, save_model
from training.optimisation.scoring import ReferencePolicy
from training.optimisation.trainer import Trainer


def saved(trainer: Trainer, run: Path, step: int, state: dict[str, Any] | None = None, keep: int = 2) -> Path:
    tokenizer = load_tokenizer(WEIGHTS)
    return PendingCheckpoint(run, step, trainer, state or {"logs": {}}, tokenizer, keep=keep).finish()


def test_only_the_last_ones_stay_one_without_its_mark_is_none_and_a_damaged_one_is_an_error(tmp_path: Path) -> None:
    trainer = solo()
    assert last_checkpoint(tmp_path) is None
    for step in (1, 2, 3):
        saved(trainer, tmp_path, step, keep=2)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step-00000002", "step-00000003"]
    (tmp_path / "checkpoints/step-00000003/DONE.json").unlink()
    found = last_checkpoint(tmp_path)
    assert found is not None
    assert found.step == 2
    state = found.folder / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "format": 99}))
    with pytest.raises(StoreError, match="format 99"):
        last_checkpoint(tmp_path)
    state.write_text("{")
    with pytest.raises(StoreError, match="damaged"):
        last_checkpoint(tmp_path)


def test_training_goes_on_while_a_checkpoint_is_written_and_from_it_bit_by_bit(tmp_path: Path) -> None:
    """What is written is the state of the moment when it was begun, byte for byte; until then the one before counts."""
    trainer, tokenizer = solo(), load_tokenizer(WEIGHTS)
    trainer.step(samples(), GrpoSettings())
    at_once = saved(trainer, tmp_path / "at_once", 1)
    before = {name: value.clone() for name, value in trainer.full_state_dict().items()}
    saved(trainer, tmp_path / "run", 0)
    pending = PendingCheckpoint(tmp_path / "run", 1, trainer, {"logs": {}}, tokenizer, keep=2)
    wanted = trainer.step(samples(seed=2), GrpoSettings())
    torch.rand(3)
    found = last_checkpoint(tmp_path / "run")
    assert found is not None
    assert found.step == 0  # a kill here leaves this one
    folder = pending.finish()
    for name in ("weights/__0_0.distcp", "state.json", "hf/model.safetensors"):
        assert (folder / name).read_bytes() == (at_once / name).read_bytes()
    found = last_checkpoint(tmp_path / "run")
    assert found is not None
    second = solo()
    restore_trainer(found, second)
    assert second.steps_taken == 1
    exported, restored = load_model(folder / "hf").state_dict(), second.full_state_dict()
    for name, value in restored.items():
        assert torch.equal(value, before[name])
        assert torch.equal(value, exported[name])
    assert not any(torch.equal(restored[name], value) for name, value in read_tensors(WEIGHTS))
    taken = second.step(samples(seed=2), GrpoSettings())
    assert (taken.loss, taken.learning_rate) == (wanted.loss, wanted.learning_rate)
    after = trainer.full_state_dict()
    assert all(torch.equal(value, after[name]) for name, value in second.full_state_dict().items())


def test_a_log_is_cut_back(tmp_path: Path) -> None:
    log = JsonlLog(tmp_path / "log.jsonl")
    log.append({"step": 1})
    place = log.offset()
    log.append({"step": 2, "text": "später"})
    log.close()
    again = JsonlLog(tmp_path / "log.jsonl")
    again.truncate(place)
    again.append({"step": 2})
    again.close()
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert rows == [{"step": 1}, {"step": 2}]
    short = JsonlLog(tmp_path / "log.jsonl")
    with pytest.raises(StoreError, match="changed since"):
        short.truncate(10_000)
    short.close()


def test_publishing_again_replaces_the_folder_and_leaves_nothing_aside(
    random_model: Path, other_model: Path, tmp_path: Path
) -> None:
    first = save_model(load_model(random_model), load_tokenizer(random_model), tmp_path / "model")
    (tmp_path / "model" / "stray.txt").write_text("old")
    second = save_model(
        load_model(other_model), load_tokenizer(other_model), tmp_path / "model", extra_files={"README.md": "new\n"}
    )
    assert first != second == json.loads((tmp_path / "model" / MARK).read_text())["revision"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert not (tmp_path / "model" / "stray.txt").exists()
    assert (tmp_path / "model" / "README.md").read_text() == "new\n"


def test_what_is_not_whole_is_refused(random_model: Path, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"config\.json is missing"):
        load_model(tmp_path)
    tokenizer, folder = load_tokenizer(random_model), tmp_path / "model"
    tokenizer.chat_template = None
    save_model(load_model(random_model), tokenizer, folder)
    with pytest.raises(PolicyError, match="no chat template"):
        load_tokenizer(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(PolicyError, match="cannot load this model"):
        load_model(folder)


def test_whoever_overwrites_the_file_does_not_change_a_loaded_model(random_model: Path, tmp_path: Path) -> None:
    """As ``cp`` does it: in place. Parameters mapped from the file take the new bytes, trained or not."""
    file = shutil.copytree(random_model, tmp_path / "model") / "model.safetensors"
    model = load_model(file.parent)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    before = [parameter.clone() for parameter in model.parameters()]
    file.write_bytes(file.read_bytes())
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight


def test_weights_that_are_no_numbers_are_named_before_training(random_model: Path, tmp_path: Path) -> None:
    model = load_model(random_model)
    name, value = next(iter(model.named_parameters()))
    value.data[0, 0] = float("nan")
    save_model(model, load_tokenizer(random_model), tmp_path / "nan")
    with pytest.raises(PolicyError, match=f"1 of its tensors hold NaN or infinite weights, the first is {name}"):
        load_model(tmp_path / "nan", training=True)


def held(folder: Path = WEIGHTS, **objective: Any) -> tuple[Trainer, ReferencePolicy]:
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
