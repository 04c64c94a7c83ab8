"""Bring new weights to vLLM's workers: in a folder, over HTTP, or by broadcast through a group.

A group has no key: any process that reaches its port while it opens may join, so use a private network.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from urllib.request import urlopen

from curation.storage.scratch import memory_folder

FOLDER_TRANSFER = "goldilocks_folder"
"""vLLM's name for weights that come as a folder; registered by `training.generation.vllm_worker`."""

WORKER = "training.generation.vllm_worker.Worker"
"""What is mixed into vLLM's workers that take new weights."""

Backend = Literal["nccl", "gloo"]

Way = Literal["folder", "http", "nccl", "gloo"]
"""``folder``: servers read it; ``http``: they fetch it; ``nccl``: from GPU to GPU; ``gloo``: between CPUs, in tests."""

_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")

SILENCE_S = 600.0
"""Seconds that gloo waits for another end; NCCL waits until its group is closed."""

_FETCH_SILENCE_S = 120.0
"""Seconds without a byte after which a trainer that serves weights counts as gone."""


class Group:
    """One process's end of an open group.

    Raises:
        RuntimeError: on opening and broadcasting, if another end is missing.
    """

    def __init__(self, backend: Backend, end: Any) -> None:
        self._backend, self._end = backend, end

    def broadcast(self, tensor: Any) -> None:
        """Send a tensor from rank 0, or receive it in place; a GPU only queues it."""
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
    """Return an end of a group once all have joined; rank 0 listens."""
    if backend == "gloo":
        from vllm.distributed.utils import stateless_init_torch_distributed_process_group as join

        patience = timedelta(seconds=SILENCE_S)
        return Group("gloo", join(address, port, rank, world_size, "gloo", timeout=patience))
    from vllm.distributed.weight_transfer.nccl_common import stateless_init_process_group

    return Group("nccl", stateless_init_process_group(address, port, rank, world_size, device))


@contextmanager
def weights_folder(folder: str, url: str) -> Iterator[Path]:
    """Yield ``folder`` if it is seen here, else one fetched from ``url`` for the block.

    Raises:
        OSError: the weights cannot be fetched.
    """
    if not url or (folder and any(Path(folder).glob("*.safetensors"))):
        yield Path(folder)
        return
    with tempfile.TemporaryDirectory(prefix="goldilocks-fetched-", dir=memory_folder()) as place:
        with urlopen(f"{url}/", timeout=_FETCH_SILENCE_S) as answer:
            names = [str(name) for name in json.load(answer)]
        for name in names:
            with (
                urlopen(f"{url}/{name}", timeout=_FETCH_SILENCE_S) as answer,
                (Path(place) / Path(name).name).open("wb") as kept,
            ):
                shutil.copyfileobj(answer, kept, 2**20)
                if kept.tell() != int(answer.headers["Content-Length"]):
                    raise OSError(f"{url}/{name} ended after {kept.tell()} bytes")
        yield Path(place)


def folder_way(urls: Sequence[str]) -> Literal["folder", "http"]:
    """Return ``folder`` if all servers are on this machine, else ``http``."""
    return "folder" if all(urlsplit(url).hostname in _THIS_MACHINE for url in urls) else "http"


def fastest_way(urls: Sequence[str], device: str, vllm: str | None) -> Way:
    """Return ``nccl`` for GPUs of this machine, else as `folder_way`."""
    on_gpus = device.startswith("cuda") and vllm is not None and "cpu" not in vllm
    return "nccl" if on_gpus and folder_way(urls) == "folder" else folder_way(urls)
