"""Checkpoints of a loop, written while it goes on: one at a time, the next waits for the one before; its trajectory.

Invariants: what a checkpoint holds is copied between two steps; it counts as saved once it is whole on disk; what went
wrong in writing ends the run, at the next step or the next checkpoint. A run ends when its last checkpoint is whole.

Not here: what a checkpoint holds (`training.optimisation.checkpoint`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from torch import Tensor

from training.engines.embedded.components import LoopComponents
from training.optimisation.checkpoint import PendingCheckpoint
from training.optimisation.model import save_model


def save_to_trajectory(components: LoopComponents, version: int, state: Mapping[str, Tensor]) -> None:
    """Write a version of the weights for `goldilocks ablate --analyse`, unrounded.

    A step at a rate of 1e-5 moves few weights of a bf16 model at all.
    """
    folder = components.out / "trajectory" / f"v{version:08}"
    save_model(components.trainer.model, components.tokenizer, folder, asked=components.recipe.trained, state=state)


class CheckpointSaver:
    """Saves a loop's checkpoints. All calls come from one event loop.

    Args:
        step: of the checkpoint that the run went on from; 0 where there was none.
    """

    def __init__(self, components: LoopComponents, step: int) -> None:
        self.saved_step = step
        self._components = components
        self._writing: asyncio.Future[None] | None = None

    async def begin(self, trainer_thread: ThreadPoolExecutor, step: int, state: Mapping[str, Any]) -> None:
        """Copy what the checkpoint holds, on the trainer's thread, and begin to write it."""
        await self.settle()
        components, keep = self._components, self._components.recipe.checkpoints.keep

        def begin() -> PendingCheckpoint:
            return PendingCheckpoint(components.out, step, components.trainer, state, components.tokenizer, keep=keep)

        pending = await asyncio.get_running_loop().run_in_executor(trainer_thread, begin)
        self._writing = asyncio.ensure_future(self._finish(pending))

    async def settle(self) -> None:
        """Return when nothing is being written; raise what went wrong in writing."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            await writing

    async def check(self) -> None:
        """Raise what went wrong in writing, if anything did."""
        if self._writing is not None and self._writing.done():
            await self.settle()

    async def _finish(self, pending: PendingCheckpoint) -> None:
        await asyncio.to_thread(pending.finish)
        self.saved_step = pending.step
        self._components.mirror.wake()
