"""Transfer new weights to vLLM's workers, in a folder or by broadcast.

A group has no key: any process that reaches its port while it opens may join, so use a private network.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal
from urllib.parse import urlsplit

from curation.records import PolicyError

FOLDER_TRANSFER = "goldilocks_folder"
"""vLLM's name for our receiver."""

WORKER = "training.generation.vllm_worker.Worker"
"""Extends vLLM's workers."""

Backend = Literal["nccl", "gloo"]

Way = Literal["folder", "nccl", "gloo"]
"""``folder``: servers read it; ``nccl``, ``gloo``: broadcasts between GPUs, between CPUs."""

_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")

SILENCE_S = 600.0
"""Timeout of gloo in seconds."""


class Group:
    """A process's end of an open group.

    Raises:
        RuntimeError: another end is missing.
    """

    def __init__(self, backend: Backend, end: Any) -> None:
        self._backend, self._end = backend, end

    def broadcast(self, tensor: Any) -> None:
        """Send a tensor from rank 0, or receive it in place."""
        if self._end is None:
            raise RuntimeError("the group is closed")
        if self._backend == "nccl":
            self._end.broadcast(tensor, src=0)
        else:
            self._end.broadcast(tensor, 0).wait()

    def close(self) -> None:
        """Leave the group; ends that wait for this one get an error."""
        end, self._end = self._end, None
        if end is not None and self._backend == "nccl":
            end.destroy()
        elif end is not None:
            end.abort()


def open_group(backend: Backend, address: str, port: int, rank: int, world_size: int, device: int | None) -> Group:
    """Return an end once all have joined; rank 0 listens."""
    if backend == "gloo":
        from vllm.distributed.utils import stateless_init_torch_distributed_process_group as join

        patience = timedelta(seconds=SILENCE_S)
        return Group("gloo", join(address, port, rank, world_size, "gloo", timeout=patience))
    from vllm.distributed.weight_transfer.nccl_common import stateless_init_process_group

    return Group("nccl", stateless_init_process_group(address, port, rank, world_size, device))


def weights_way(urls: Sequence[str], device: str, vllm: str | None) -> Way:
    """Return ``nccl`` for GPUs, else ``folder`` on this machine, else ``gloo``."""
    if device.startswith("cuda") and vllm is not None and "cpu" not in vllm:
        return "nccl"
    return "folder" if all(urlsplit(url).hostname in _THIS_MACHINE for url in urls) else "gloo"


def address_towards(url: str) -> str:
    """Return this machine's address towards a server."""
    parts = urlsplit(url)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
            towards.connect((parts.hostname or "", parts.port or 80))
            return str(towards.getsockname()[0])
    except OSError as error:
        raise PolicyError(f"urls: no route from this machine to {url} ({error.strerror or error}).") from error
