"""Checkpoints of a training run: everything it needs to go on, in one folder a step.

    checkpoints/step-00000020/weights/     torch.distributed.checkpoint: weights and optimiser, of all ranks
    checkpoints/step-00000020/state.json   scheduler with what was in flight, curriculum, RNG, offsets in the logs
    checkpoints/step-00000020/hf/          the model in Hugging Face format, which transformers and vLLM load
    checkpoints/step-00000020/adapter/     with [lora], the adapters alone, which peft loads
    checkpoints/step-00000020/DONE.json    the mark

Invariants: a folder is written aside, flushed and renamed, so one with a mark is whole, also after kill -9; the last
``keep`` stay. It is copied at one moment and may be written while training goes on. Rollouts that were in flight stand
in the state as requests and are generated again, with the same seed.

Not here: what the parts' states hold.
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
from curation.storage.stages import atomic_write
from training.optimisation.model import save_model
from training.optimisation.trainer import Trainer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CHECKPOINT_FORMAT = 3
"""Layout of a checkpoint; another one is refused."""

MARK = "DONE.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A whole checkpoint: after ``step`` steps, in ``folder``, with the loop's ``state``."""

    step: int
    folder: Path
    state: Mapping[str, Any]


class PendingCheckpoint:
    """The checkpoint after ``step`` steps, copied and begun to be written; rank 0 makes one, all ranks take part.

    `finish` writes the rest, on any thread, while training goes on. ``state`` is the loop's, as JSON can hold it; the
    trainer's steps and the RNG are added. The copies take the memory of this rank's weights and optimiser once more
    until they are written, on a GPU's host; rank 0 has the model's as well. No other checkpoint may be
    begun meanwhile.
    """

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
            "reference": trainer.reference.revision if trainer.reference is not None else None,
            "teacher": trainer.teacher.revision if trainer.teacher is not None else None,
        }
        if trainer.adapters is not None:
            self._state |= {"lora": trainer.adapters.described(), "base": trainer.base_revision}
        self._model = _copies(trainer.full_state_dict())
        self._adapters = trainer.adapter_tensors()
        self._weights = trainer.begin_save(self._aside / "weights")

    def finish(self) -> Path:
        """Write what is left, flush and rename; return the checkpoint's folder."""
        self._weights.result()
        (self._aside / "state.json").write_text(json.dumps(self._state, ensure_ascii=False), encoding="utf-8")
        save_model(
            self._trainer.model, self._tokenizer, self._aside / "hf", asked=self._trainer.asked, state=self._model
        )
        del self._model
        if self._adapters:
            self._trainer.write_adapters(self._aside / "adapter", self._adapters)
        (self._aside / MARK).write_text(json.dumps({"step": self.step}) + "\n", encoding="utf-8")
        for path in [*self._aside.rglob("*"), self._aside]:
            _flush(path)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._aside.rename(self._folder)
        _flush(self._folder.parent)
        for old in whole_checkpoints(self._run)[: -self._keep]:
            shutil.rmtree(old, ignore_errors=True)
        return self._folder


def save_checkpoint(
    run: Path,
    step: int,
    trainer: Trainer,
    state: Mapping[str, Any],
    tokenizer: PreTrainedTokenizerBase,
    *,
    keep: int,
) -> Path:
    """Write the checkpoint after ``step`` steps and return its folder; see `PendingCheckpoint`."""
    return PendingCheckpoint(run, step, trainer, state, tokenizer, keep=keep).finish()


def last_checkpoint(run: Path) -> Checkpoint | None:
    """Return the newest whole checkpoint of a run's folder; None where there is none.

    Raises:
        StoreError: it is damaged, or of another format.
    """
    folders = whole_checkpoints(run)
    if not folders:
        return None
    folder = folders[-1]
    try:
        state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        form, step = state["format"], state["step"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{folder} is damaged ({error}); remove it to go on from the one before") from error
    if form != CHECKPOINT_FORMAT:
        raise StoreError(
            f"{folder} has format {form}, this version reads {CHECKPOINT_FORMAT}; use the version that wrote it"
        )
    return Checkpoint(step, folder, state)


def restore_trainer(checkpoint: Checkpoint, trainer: Trainer) -> None:
    """Load weights, optimiser, steps and RNG of a checkpoint into the trainer.

    Raises:
        StoreError: the reference of the KL term, or the model or the shape of adapters, is not what the run had.
    """
    _require_same_adapters(checkpoint, trainer)
    recorded = checkpoint.state.get("reference")
    current = trainer.reference.revision if trainer.reference is not None else None
    if recorded is not None and current is not None and recorded != current:
        raise StoreError(
            f"{checkpoint.folder}: the reference model of the KL term was {recorded}, the one given now is {current}; "
            "put it back, or set objective.reference to where it lies"
        )
    taught_by = trainer.teacher.revision if trainer.teacher is not None else None
    if checkpoint.state["teacher"] != taught_by:
        raise StoreError(
            f"{checkpoint.folder}: the teacher was {checkpoint.state['teacher']}, the one given now is {taught_by}; "
            "put it back"
        )
    trainer.load(checkpoint.folder / "weights", checkpoint.state["optimiser_steps"])
    torch.set_rng_state(torch.tensor(checkpoint.state["rng"], dtype=torch.uint8))


def _require_same_adapters(checkpoint: Checkpoint, trainer: Trainer) -> None:
    shape = trainer.adapters.described() if trainer.adapters is not None else None
    base = trainer.base_revision
    recorded, recorded_base = checkpoint.state.get("lora"), checkpoint.state.get("base")
    if recorded != shape:
        raise StoreError(
            f"{checkpoint.folder}: the run had [lora] as {recorded or 'no table'}, the recipe has it as "
            f"{shape or 'no table'}; put it back, or begin another run"
        )
    if None not in (recorded_base, base) and recorded_base != base:
        raise StoreError(
            f"{checkpoint.folder}: its adapters belong to the model {recorded_base}, the one given now is {base}; put "
            "that model back"
        )


class JsonlLog:
    """A file of JSON lines that a resumed run cuts back to where its checkpoint was."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._file = path.open("ab")

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one line; a reader sees it at once, and a kill of this process does not lose it."""
        self._file.write((json.dumps(row, ensure_ascii=False) + "\n").encode())
        self._file.flush()

    def offset(self) -> int:
        """Return the number of bytes written so far; they are on disk when this returns."""
        os.fsync(self._file.fileno())
        return self._file.tell()

    def truncate(self, offset: int) -> None:
        """Remove everything after this offset.

        Raises:
            StoreError: the file is shorter.
        """
        size = self._path.stat().st_size
        if size < offset:
            raise StoreError(f"{self._path} has {size} bytes, the checkpoint knows {offset}; it was changed since")
        self._file.truncate(offset)
        self._file.seek(offset)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def write_run_file(run: Path, table: Mapping[str, Any]) -> None:
    """Write ``run.json``, by which a run is resumed."""
    run.mkdir(parents=True, exist_ok=True)
    atomic_write(run / "run.json", json.dumps(table, indent=1, ensure_ascii=False) + "\n")


def _copies(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tensors as copies in this machine's memory; one under two names stays one."""
    copies: dict[int, torch.Tensor] = {}
    for value in state.values():
        if id(value) not in copies:
            copies[id(value)] = value if value.is_meta else value.detach().to("cpu", copy=True)
    return {name: copies[id(value)] for name, value in state.items()}


def whole_checkpoints(run: Path) -> list[Path]:
    """Return the folders of a run's whole checkpoints, oldest first."""
    return sorted(path.parent for path in (run / "checkpoints").glob(f"step-*/{MARK}"))


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
