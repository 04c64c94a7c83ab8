"""Write and read checkpoints of a training run.

    checkpoints/step-00000020/weights/     weights and optimiser of all ranks
    checkpoints/step-00000020/state.json   rollouts in flight, curriculum, RNG, offsets in the logs
    checkpoints/step-00000020/hf/          the model for transformers and vLLM
    checkpoints/step-00000020/adapter/     with [lora], the adapters for peft
    checkpoints/step-00000020/DONE.json    the mark

Invariant: a folder with a mark is complete, also after kill -9.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from curation.records import StoreError
from training.optimisation.model import MARK, flush
from training.optimisation.trainer import Trainer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CHECKPOINT_FORMAT = 5
"""Checkpoints of another format are refused."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint, with the loop's ``state``."""

    step: int
    folder: Path
    state: Mapping[str, Any]


class PendingCheckpoint:
    """A checkpoint that rank 0 copied to the host; begin no other before `finish` returns."""

    def __init__(
        self,
        run: Path,
        step: int,
        trainer: Trainer,
        state: Mapping[str, Any],
        tokenizer: PreTrainedTokenizerBase,
        *,
        keep: int,
    ) -> None:
        self.step = step
        self._run, self._trainer, self._tokenizer, self._keep = run, trainer, tokenizer, keep
        self._folder = run / "checkpoints" / f"step-{step:08}"
        self._aside = self._folder.parent / f".aside-{self._folder.name}"
        shutil.rmtree(self._aside, ignore_errors=True)
        self._aside.mkdir(parents=True)
        self._state = {
            **state,
            "format": CHECKPOINT_FORMAT,
            "step": step,
            "optimiser_steps": trainer.steps_taken,
            "rng": torch.get_rng_state().tolist(),
            **_identity(trainer),
        }
        self._model = _copies(trainer.full_state_dict())
        self._adapters = trainer.adapter_tensors()
        self._weights = trainer.begin_save(self._aside / "weights")

    def finish(self) -> Path:
        """Write the checkpoint, remove old ones, and return the folder."""
        from torch.distributed.checkpoint.api import CheckpointException

        try:
            self._weights.result()
        except CheckpointException as error:  # a BaseException, without errno
            causes = dict.fromkeys(str(cause).splitlines()[0] for cause, _ in error.failures.values())
            raise StoreError(
                f"{self._aside} cannot be written ({'; '.join(causes)}); free disk space if it is full, then "
                f"`goldilocks train --resume {self._run}`"
            ) from error
        (self._aside / "state.json").write_text(json.dumps(self._state, ensure_ascii=False), encoding="utf-8")
        self._trainer.publish(self._aside / "hf", self._tokenizer, self._model)
        del self._model
        if self._adapters:
            self._trainer.write_adapters(self._aside / "adapter", self._adapters)
        (self._aside / MARK).write_text(json.dumps({"step": self.step}) + "\n", encoding="utf-8")
        for path in [*self._aside.rglob("*"), self._aside]:
            flush(path)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._aside.rename(self._folder)
        flush(self._folder.parent)
        for old in whole_checkpoints(self._run)[: -self._keep]:
            shutil.rmtree(old, ignore_errors=True)
        return self._folder


def last_checkpoint(run: Path) -> Checkpoint | None:
    """Return a run's newest complete checkpoint, if any."""
    folders = whole_checkpoints(run)
    if not folders:
        return None
    folder = folders[-1]
    try:
        state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        form, step = state["format"], state["step"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{folder} is damaged ({error}); remove it to resume from the previous one") from error
    if form != CHECKPOINT_FORMAT:
        raise StoreError(
            f"{folder} has format {form}, this version reads {CHECKPOINT_FORMAT}; use the version that wrote it"
        )
    return Checkpoint(step, folder, state)


def restore_trainer(checkpoint: Checkpoint, trainer: Trainer) -> None:
    """Load a checkpoint into the trainer."""
    for name, current in _identity(trainer).items():
        recorded = checkpoint.state[name]
        is_unknown = name in ("reference", "base") and None in (recorded, current)
        if recorded != current and not is_unknown:
            raise StoreError(
                f"{checkpoint.folder}: {_NAMES[name]} was {recorded or 'none'}, the one given now is "
                f"{current or 'none'}; put it back, or begin another run"
            )
    trainer.load(checkpoint.folder / "weights", checkpoint.state["optimiser_steps"])
    torch.set_rng_state(torch.tensor(checkpoint.state["rng"], dtype=torch.uint8))


_NAMES = {
    "reference": "the reference model",
    "teacher": "the teacher",
    "lora": "the table [lora]",
    "base": "the model that the adapters belong to",
}


def _identity(trainer: Trainer) -> dict[str, Any]:
    """Return what a resumed run must not change."""
    return {
        "reference": trainer.reference.revision if trainer.reference is not None else None,
        "teacher": trainer.teacher.revision if trainer.teacher is not None else None,
        "lora": trainer.adapters.settings.model_dump(mode="json") if trainer.adapters is not None else None,
        "base": trainer.base_revision,
    }


class JsonlLog:
    """A file of JSON lines that a resumed run truncates."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file = path.open("ab")

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a line that survives a kill."""
        self.buffer(row)
        self._file.flush()

    def buffer(self, row: Mapping[str, Any]) -> None:
        """Write a line that a kill may lose."""
        self._file.write((json.dumps(row, ensure_ascii=False) + "\n").encode())

    def offset(self) -> int:
        """Return the bytes written, all on disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def truncate(self, offset: int) -> None:
        """Remove all after this offset."""
        size = self._path.stat().st_size
        if size < offset:
            raise StoreError(f"{self._path} has {size} bytes, the checkpoint knows {offset}; it has been changed since")
        self._file.truncate(offset)
        self._file.seek(offset)

    def close(self) -> None:
        self._file.close()


def _copies(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copy the tensors to the host; tied tensors stay tied."""
    copies: dict[int, torch.Tensor] = {}
    for value in state.values():
        if id(value) not in copies:
            copies[id(value)] = value if value.is_meta else value.detach().to("cpu", copy=True)
    return {name: copies[id(value)] for name, value in state.items()}


def whole_checkpoints(run: Path) -> list[Path]:
    """Return a run's complete checkpoints, oldest first."""
    return sorted(path.parent for path in (run / "checkpoints").glob(f"step-*/{MARK}"))
