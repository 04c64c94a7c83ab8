"""Save the ledger's state with each of verl's checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from verl.trainer.ppo.checkpoint_callback import CheckpointCallback

from training.engines.verl.configuration import run_facts
from training.engines.verl.groups import the_ledger
from training.engines.verl.stages import remove_old


class CurriculumCheckpoint(CheckpointCallback):
    """Writes the ledger's state into new checkpoints; one without it counts as none."""

    def on_save(
        self, trainer: Any, global_step: int, checkpoint_dir: str, async_save: bool = False, **kwargs: Any
    ) -> None:
        """Write the state, end verl after a stage, and remove old checkpoints."""
        if the_ledger().save(global_step, Path(checkpoint_dir)):
            trainer.total_training_steps = global_step
        remove_old(Path(checkpoint_dir).parent, run_facts().recipe.checkpoints.keep)
