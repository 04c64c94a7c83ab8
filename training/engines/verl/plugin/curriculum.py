"""Draw verl's rows by our curriculum, and save its state in verl's checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from verl.trainer.ppo.checkpoint_callback import CheckpointCallback
from verl.utils.dataset.rl_dataset import RLHFDataset

from training.engines.verl.configuration import run_facts
from training.engines.verl.groups import open_ledger, the_ledger
from training.engines.verl.stages import remove_old


class CurriculumDataset(RLHFDataset):
    """The rows of an exported set; each request for a training row is a draw."""

    def __init__(
        self, data_files: Any, tokenizer: Any, config: Any, processor: Any = None, max_samples: int = -1
    ) -> None:
        super().__init__(data_files, tokenizer, config, processor, max_samples=max_samples)
        self._ledger = None
        if list(data_files) == list(config["train_files"]) and max_samples == -1:
            self._ledger = open_ledger(self.dataframe, run_facts().out / "verl" / "checkpoints")

    def __getitem__(self, item: int) -> dict[str, Any]:
        """Return the next drawn row, or this held-out row."""
        row: dict[str, Any] = super().__getitem__(item if self._ledger is None else self._ledger.draw())
        return row

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the ledger."""
        return {**super().__getstate__(), "_ledger": None}


class CurriculumCheckpoint(CheckpointCallback):
    """Writes the ledger's state into new checkpoints."""

    def on_save(
        self, trainer: Any, global_step: int, checkpoint_dir: str, async_save: bool = False, **kwargs: Any
    ) -> None:
        """Write the state, end verl after a stage, and remove old checkpoints."""
        if the_ledger().save(global_step, Path(checkpoint_dir)):
            trainer.total_training_steps = global_step
        remove_old(Path(checkpoint_dir).parent, run_facts().recipe.checkpoints.keep)
