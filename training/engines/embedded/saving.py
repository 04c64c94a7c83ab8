"""Write a loop's checkpoints while it goes on.

Invariants: content is copied between two steps; one checkpoint is written at a time; a write error ends the run at
the next step or checkpoint; a run ends when its last checkpoint is whole.
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
    """Write a version of the weights, unrounded, for `goldilocks ablate --analyse`."""
    folder = components.out / "trajectory" / f"v{version:08}"
    save_model(components.trainer.model, components.tokenizer, folder, asked=components.recipe.trained, state=state)


class CheckpointSaver:
    """Save a loop's checkpoints, in one event loop.

    Args:
        step: of the resumed checkpoint, or 0.
    """

    def __init__(self, components: LoopComponents, step: int) -> None:
        self.saved_step = step
        self._components = components
        self._writing: asyncio.Future[None] | None = None

    async def begin(self, trainer_thread: ThreadPoolExecutor, step: int, state: Mapping[str, Any]) -> None:
        """Copy the checkpoint's content on the trainer's thread, and start writing it."""
        await self.settle()
        components, keep = self._components, self._components.recipe.checkpoints.keep

        def begin() -> PendingCheckpoint:
            return PendingCheckpoint(components.out, step, components.trainer, state, components.tokenizer, keep=keep)

        pending = await asyncio.get_running_loop().run_in_executor(trainer_thread, begin)
        self._writing = asyncio.ensure_future(self._finish(pending))

    async def settle(self) -> None:
        """Wait for the current write and raise its error."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            await writing

    async def check(self) -> None:
        """Raise the error of a finished write, if any."""
        if self._writing is not None and self._writing.done():
            await self.settle()

    async def _finish(self, pending: PendingCheckpoint) -> None:
        await asyncio.to_thread(pending.finish)
        self.saved_step = pending.step
        self._components.mirror.wake()
