"""How new weights reach the servers that generate: from GPU to GPU, or as a folder that they read or fetch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from urllib.parse import urlsplit

Way = Literal["folder", "http", "nccl", "gloo"]
"""``folder``: servers read it; ``http``: they fetch it; ``nccl``: from GPU to GPU; ``gloo``: between CPUs, in tests."""

_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")


def folder_way(urls: Sequence[str]) -> Literal["folder", "http"]:
    """Return how a folder reaches servers: they read it if all are on this machine, else they fetch it."""
    return "folder" if all(urlsplit(url).hostname in _THIS_MACHINE for url in urls) else "http"


def fastest_way(urls: Sequence[str], device: str, vllm: str | None) -> Way:
    """Return the fastest way to servers: from GPU to GPU on one machine, else as a folder.

    Args:
        device: the trainer's, as ``cpu`` or ``cuda``.
        vllm: version of vLLM where the trainer runs, which joins the group; None without.
    """
    on_gpus = device.startswith("cuda") and vllm is not None and "cpu" not in vllm
    return "nccl" if on_gpus and folder_way(urls) == "folder" else folder_way(urls)
