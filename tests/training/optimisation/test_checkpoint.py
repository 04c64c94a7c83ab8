"""Checkpoints: whole or absent, the last ones kept, and logs cut back to where they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from curation.records import StoreError
from tests.training.optimisation.test_trainer import samples, solo
from training.embedded_model import WEIGHTS
from training.generation.generators import read_weights
from training.objectives.grpo import GrpoSettings
from training.optimisation.checkpoint import (
    JsonlLog,
    PendingCheckpoint,
    last_checkpoint,
    restore_trainer,
    save_checkpoint,
)
from training.optimisation.model import load_model, load_tokenizer, published_revision
from training.optimisation.trainer import Trainer


def saved(trainer: Trainer, run: Path, step: int, state: dict[str, Any] | None = None, keep: int = 2) -> Path:
    tokenizer = load_tokenizer(WEIGHTS)
    return save_checkpoint(run, step, trainer, state or {"logs": {}}, tokenizer, keep=keep)


def test_a_restored_trainer_goes_on_bit_by_bit(tmp_path: Path) -> None:
    first, second = solo(), solo()
    first.step(samples(), GrpoSettings())
    saved(first, tmp_path, 1)
    found = last_checkpoint(tmp_path)
    assert found is not None
    assert found.step == 1
    restore_trainer(found, second)
    figures = [trainer.step(samples(seed=2), GrpoSettings()) for trainer in (first, second)]
    assert figures[0].loss == figures[1].loss
    assert figures[0].learning_rate == figures[1].learning_rate
    assert all(
        torch.equal(one, two)
        for one, two in zip(first.full_state_dict().values(), second.full_state_dict().values(), strict=True)
    )


def test_the_export_is_the_trained_model(tmp_path: Path) -> None:
    trainer = solo()
    trainer.step(samples(), GrpoSettings())
    folder = saved(trainer, tmp_path, 1) / "hf"
    assert published_revision(folder)
    loaded = load_model(folder).state_dict()
    assert all(torch.equal(loaded[name], value) for name, value in trainer.full_state_dict().items())
    assert not any(torch.equal(loaded[name], value) for name, value in read_weights(WEIGHTS).items())
    assert load_tokenizer(folder).chat_template


def test_only_the_last_ones_stay_and_one_without_its_mark_is_none(tmp_path: Path) -> None:
    trainer = solo()
    for step in (1, 2, 3):
        saved(trainer, tmp_path, step, keep=2)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step-00000002", "step-00000003"]
    (tmp_path / "checkpoints/step-00000003/DONE.json").unlink()
    found = last_checkpoint(tmp_path)
    assert found is not None
    assert found.step == 2


def test_training_goes_on_while_a_checkpoint_is_written_and_one_cut_off_is_none(tmp_path: Path) -> None:
    """What is written is the state of the moment when it was begun, byte for byte; until then the one before counts."""
    trainer, tokenizer = solo(), load_tokenizer(WEIGHTS)
    trainer.step(samples(), GrpoSettings())
    at_once = saved(trainer, tmp_path / "at_once", 1)
    before = {name: value.clone() for name, value in trainer.full_state_dict().items()}
    saved(trainer, tmp_path / "run", 0)
    pending = PendingCheckpoint(tmp_path / "run", 1, trainer, {"logs": {}}, tokenizer, keep=2)
    trainer.step(samples(seed=2), GrpoSettings())
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
    assert all(torch.equal(value, before[name]) for name, value in second.full_state_dict().items())


def test_a_damaged_or_foreign_state_is_an_error(tmp_path: Path) -> None:
    assert last_checkpoint(tmp_path) is None
    folder = saved(solo(), tmp_path, 1)
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps({**state, "format": 99}))
    with pytest.raises(StoreError, match="format 99"):
        last_checkpoint(tmp_path)
    (folder / "state.json").write_text("{")
    with pytest.raises(StoreError, match="damaged"):
        last_checkpoint(tmp_path)


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
