"""The state of draws, pools and logs beside each of verl's checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from verl.trainer.ppo.checkpoint_callback import CheckpointCallback

from curation.storage.stages import atomic_write
from training.engines.verl.plugin.ledger import STATE, the_ledger


class CurriculumCheckpoint(CheckpointCallback):
    """Writes the ledger's state into the folder of a checkpoint that verl has just written."""

    def on_save(
        self, trainer: Any, global_step: int, checkpoint_dir: str, async_save: bool = False, **kwargs: Any
    ) -> None:
        """Write it."""
        ledger = the_ledger()
        atomic_write(Path(checkpoint_dir) / STATE, json.dumps(ledger.state(), ensure_ascii=False) + "\n")
