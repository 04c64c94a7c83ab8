"""New weights for vLLM's engine while requests run, for the trainer.

Invariants:
  - an update pauses the engine between two tokens and aborts nothing: requests keep their tokens and their KV cache;
  - weights of another shape are refused before the engine is touched; after an update that failed in part the engine
    answers nothing (`VllmEngine.abandon`).
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from curation.policies.checkpoints import fitting, require_same_shape, write_weights
from curation.policies.vllm.engine import VllmEngine
from curation.policies.vllm.startup import first_line
from curation.records import PolicyError
from curation.storage.scratch import memory_folder

Weights = Path | Mapping[str, Any]
"""A folder of safetensors, or tensors by their names in the checkpoint."""


class WeightUpdates:
    """Exchanges the weights of one engine, which was started with `FOLDER_TRANSFER`.

    Args:
        folder: the checkpoint that the engine started with.
        on_pause: is told when the engine pauses (True) and goes on (False), from any thread.
    """

    def __init__(
        self,
        engine: VllmEngine,
        folder: Path,
        on_pause: Callable[[bool], None] | None = None,
    ) -> None:
        self.version = 0
        """Of the weights that make the next token."""
        self._engine, self._folder = engine, folder
        self.on_pause = on_pause or (lambda _paused: None)
        self._update_lock = asyncio.Lock()
        self._exchanges: set[asyncio.Task[None]] = set()

    async def update(self, weights: Weights, version: int) -> float:
        """Exchange the weights between two tokens; return the seconds it took. Tokens from then on carry ``version``.

        Once begun, an update goes on to its end even where the call is cancelled.

        Raises:
            PolicyError: the weights are of another shape (nothing has changed); or the update failed half-way.
        """
        self._engine.require_running()
        started = time.perf_counter()
        exchange = asyncio.create_task(self._exchange(self._fitting(weights), version))
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._exchanges.discard)
        await asyncio.shield(exchange)
        return time.perf_counter() - started

    async def close(self) -> None:
        """Let updates that have begun end; called before the engine ends."""
        await asyncio.gather(*self._exchanges, return_exceptions=True)

    async def _exchange(self, weights: Weights, version: int) -> None:
        async with self._update_lock:
            control = _Control(self, self._engine.vllm, version)
            sending = asyncio.create_task(asyncio.to_thread(_send, weights, control))
            await asyncio.wait([sending])
            if (failure := sending.exception()) is not None:  # the engine's process answers with bare exceptions
                why = f"weights {version} were not exchanged to the end ({first_line(failure)}); start again"
                await self._engine.abandon(why)
                raise PolicyError(f"vLLM, model {self._folder.name}: {why}.") from failure

    def _fitting(self, weights: Weights) -> Weights:
        """Return the weights under the names of the checkpoint; a tensor under two names (tied weights) goes once."""
        if isinstance(weights, Path):
            require_same_shape(self._folder, weights)
            return weights
        return fitting(self._folder, weights)


class _Control:
    """One update, driven from a thread: the engine pauses while weights are exchanged."""

    def __init__(self, updates: WeightUpdates, engine: Any, version: int) -> None:
        self._updates, self._engine, self._version = updates, engine, version
        self._loop = asyncio.get_running_loop()

    def start_weight_update(self) -> None:
        self._wait_for(self._engine.pause_generation(mode="keep", clear_cache=False))
        self._updates.on_pause(True)
        self._wait_for(self._engine.start_weight_update())

    def update_weights(self, update_info: dict[str, Any]) -> None:
        from vllm.distributed.weight_transfer.base import WeightTransferUpdateRequest

        self._wait_for(self._engine.update_weights(WeightTransferUpdateRequest(update_info)))

    def finish_weight_update(self) -> None:
        self._wait_for(self._engine.finish_weight_update(str(self._version)))
        self._updates.version = self._version
        self._wait_for(self._engine.resume_generation())
        self._updates.on_pause(False)

    def _wait_for(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _send(weights: Weights, control: _Control) -> None:
    """Have the engine load the weights from a folder."""
    with _as_folder(weights) as folder:
        control.start_weight_update()
        control.update_weights({"folder": str(folder)})
        control.finish_weight_update()


@contextmanager
def _as_folder(weights: Weights) -> Iterator[Path]:
    if isinstance(weights, Path):
        yield weights
        return
    with tempfile.TemporaryDirectory(prefix="goldilocks-weights-", dir=memory_folder()) as parent:
        folder = Path(parent) / "weights"
        write_weights(weights, folder)
        yield folder
