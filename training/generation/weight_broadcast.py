"""Broadcast new weights to vLLM's servers, by NCCL (not yet tested) or gloo.

A server whose group cannot open, or broke twice, gets folders.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from curation.policies.servers import TemporaryFailure
from curation.policies.vllm.engine import first_line
from curation.records import GoldilocksError, PolicyError
from training.generation.checkpoint_tensors import WeightVersion
from training.generation.weight_transfer import Backend, Group, open_group

T = TypeVar("T")
Command = Callable[[str, str, Mapping[str, Any]], Awaitable[None]]
"""Posts a body to a server's path, or raises `TemporaryFailure`."""

Workers = Callable[[str], Awaitable[int]]
"""Returns a server's number of workers, or raises `TemporaryFailure`."""

_MAX_BREAKS = 2


class WeightBroadcast:
    """The trainer's ends of all groups, at ``address``."""

    def __init__(
        self, backend: Backend, address: str, device: torch.device, workers: Workers, command: Command
    ) -> None:
        self._backend, self._address, self._device = backend, address, device
        self._workers, self._command = workers, command
        self._groups: dict[str, Group] = {}
        self._breaks: dict[str, int] = {}
        self._turn = asyncio.Lock()

    async def join(self, url: str) -> bool:
        """Open a server's group if needed; return whether it is open."""
        if url in self._groups:
            return True
        if self._breaks.get(url, 0) >= _MAX_BREAKS:
            return False
        try:
            self._groups[url] = await self._open(url, await self._workers(url) + 1)
        except (TemporaryFailure, PolicyError, RuntimeError, OSError) as error:
            self._breaks[url] = _MAX_BREAKS
            _say(f"{url}: new weights come as folders, not by {self._backend} ({first_line(error)})")
            return False
        return True

    async def send(self, url: str, weights: WeightVersion) -> None:
        """Send the weights to a joined server in an update.

        Raises:
            TemporaryFailure: they did not arrive, and the group is closed.
        """
        group = self._groups[url]
        sizes = await asyncio.to_thread(weights.sizes)

        async def ours() -> None:
            async with self._turn:
                await _on_thread(lambda: self._broadcast(group, weights.tensors()))

        try:
            await _both(self._command(url, "update_weights", {"update_info": sizes}), ours())
        except (TemporaryFailure, RuntimeError, OSError) as error:
            self._breaks[url] = self._breaks.get(url, 0) + 1
            self.leave(url)
            if self._breaks[url] >= _MAX_BREAKS:
                _say(f"{url}: new weights come as folders from now on ({self._backend} broke {_MAX_BREAKS} times)")
            raise TemporaryFailure(f"{self._backend}: {first_line(error)}") from error

    def leave(self, url: str) -> None:
        """Close the group of a server that may be a new process."""
        group = self._groups.pop(url, None)
        if group is not None:
            group.close()

    def close(self) -> None:
        for url in list(self._groups):
            self.leave(url)

    async def _open(self, url: str, world_size: int) -> Group:
        with socket.socket() as probe:
            probe.bind((self._address, 0))
            port = int(probe.getsockname()[1])
        info = {"backend": self._backend, "address": self._address, "port": port, "world_size": world_size}
        device = self._device.index if self._device.type == "cuda" else None
        ours = partial(open_group, self._backend, self._address, port, 0, world_size, device)
        theirs = self._command(url, "init_weight_transfer_engine", {"init_info": info})
        return await _both(theirs, _on_thread(ours))

    def _broadcast(self, group: Group, tensors: Iterator[tuple[str, Tensor]]) -> None:
        with torch.cuda.device(self._device) if self._device.type == "cuda" else nullcontext():
            for _, value in tensors:
                group.broadcast(value.detach().to(self._device).contiguous())
            if self._device.type == "cuda":
                torch.cuda.current_stream().synchronize()


async def _both(theirs: Awaitable[None], ours: Awaitable[T]) -> T:
    tasks = (asyncio.ensure_future(theirs), asyncio.ensure_future(ours))
    try:
        return (await asyncio.gather(*tasks))[1]
    finally:
        for task in tasks:
            task.cancel()  # after the first failure, which is reported


def _on_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Run on a daemon thread, which may hang."""
    future: Future[T] = Future()

    def run() -> None:
        future.set_running_or_notify_cancel()
        try:
            future.set_result(work())
        except (RuntimeError, OSError, GoldilocksError) as error:
            future.set_exception(error)
        finally:
            if not future.done():
                future.set_exception(RuntimeError("it ended by the error printed above"))

    threading.Thread(target=run, name="weight broadcast", daemon=True).start()
    return asyncio.wrap_future(future)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
