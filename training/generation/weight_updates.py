"""Replace the weights of vLLM's engine while requests run.

Invariants:
  - an update pauses the engine between two tokens and keeps all requests;
  - weights of another shape are refused first; after a half-way failure the engine refuses requests
    (`VllmEngine.abandon`).
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from curation.policies.vllm.engine import VllmEngine, first_line
from curation.records import PolicyError
from curation.storage.scratch import memory_folder
from training.generation.checkpoint_tensors import fitting, require_same_shape, write_weights

Weights = Path | Mapping[str, Any]
"""A folder of safetensors, or tensors by their names in the checkpoint."""


class WeightUpdates:
    """Replace the weights of an engine started with `FOLDER_TRANSFER`.

    Args:
        on_pause: called with whether the engine is paused.
    """

    def __init__(
        self,
        engine: VllmEngine,
        folder: Path,
        on_pause: Callable[[bool], None] | None = None,
    ) -> None:
        self.version = 0
        """The version of the weights that make the next token."""
        self._engine, self._folder = engine, folder
        self._on_pause = on_pause or (lambda _paused: None)
        self._update_lock = asyncio.Lock()
        self._exchanges: set[asyncio.Task[None]] = set()

    async def update(self, weights: Weights, version: int) -> float:
        """Replace the weights between two tokens and return the seconds; later tokens carry ``version``.

        A begun update ends even if the call is cancelled.

        Raises:
            PolicyError: the shape differs, or the update failed half-way.
        """
        self._engine.require_running()
        started = time.perf_counter()
        exchange = asyncio.create_task(self._exchange(self._fitting(weights), version))
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._exchanges.discard)
        await asyncio.shield(exchange)
        return time.perf_counter() - started

    async def close(self) -> None:
        """Wait for begun updates; called before the engine ends."""
        await asyncio.gather(*self._exchanges, return_exceptions=True)

    async def _exchange(self, weights: Weights, version: int) -> None:
        async with self._update_lock:
            loading = asyncio.create_task(self._load(weights, version))
            await asyncio.wait([loading])
            if (failure := loading.exception()) is not None:  # the engine's process answers with bare exceptions
                why = f"weights {version} were not exchanged to the end ({first_line(failure)}); start again"
                await self._engine.abandon(why)
                raise PolicyError(f"vLLM, model {self._folder.name}: {why}.") from failure

    async def _load(self, weights: Weights, version: int) -> None:
        from vllm.distributed.weight_transfer.base import WeightTransferUpdateRequest

        engine = self._engine.vllm
        with tempfile.TemporaryDirectory(prefix="goldilocks-weights-", dir=memory_folder()) as parent:
            folder = weights if isinstance(weights, Path) else Path(parent) / "weights"
            if not isinstance(weights, Path):
                await asyncio.to_thread(write_weights, weights, folder)
            await engine.pause_generation(mode="keep", clear_cache=False)
            self._on_pause(True)
            await engine.start_weight_update()
            await engine.update_weights(WeightTransferUpdateRequest({"folder": str(folder)}))
            await engine.finish_weight_update(str(version))
            self.version = version
            await engine.resume_generation()
            self._on_pause(False)

    def _fitting(self, weights: Weights) -> Weights:
        """Return the weights under the checkpoint's names, tied ones once."""
        if isinstance(weights, Path):
            require_same_shape(self._folder, weights)
            return weights
        return fitting(self._folder, weights)
