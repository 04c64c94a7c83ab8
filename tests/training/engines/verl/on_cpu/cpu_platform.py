"""The CPU as one of verl's platforms: torch's own functions where it has them, and nothing to do where a GPU has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from verl.plugin.platform import PlatformBase, set_platform


class _Module(ModuleType):
    """`torch.cpu`, with the figures of a memory that nothing is allocated in."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("memory_", "max_memory_")):
            return lambda *_: 0
        if name == "mem_get_info":
            return lambda *_: (0, 0)
        if name == "get_device_name":
            return lambda *_: "CPU"
        if name in ("empty_cache", "reset_peak_memory_stats"):
            return lambda *_: None
        return getattr(torch if name.endswith("_rng_state") else torch.cpu, name)


class PlatformCPU(PlatformBase):
    """One device per process. Ray counts it as a GPU, as `RAY_OVERRIDE_RESOURCES` says that there are some."""

    device_name = "cpu"
    vendor_name = "none"
    device_module = _Module("cpu")

    def is_available(self) -> bool:
        return True

    def current_device(self) -> Any:
        return torch.device("cpu")

    def device_count(self) -> int:
        return 1

    def _nothing(self, *_: Any) -> None: ...

    set_device = synchronize = set_allocator_settings = empty_cache = profiler_start = profiler_stop = cudart = _nothing

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def ray_resource_name(self) -> str:
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        return []

    def is_ipc_supported(self) -> bool:
        return False


def _name_gloo_once() -> None:
    """Let verl ask torch for `cpu:gloo,cpu:gloo`: it names a backend for the CPU and one for its device."""
    start = torch.distributed.init_process_group

    def started(backend: str | None = None, *arguments: Any, **named: Any) -> None:
        start("gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *arguments, **named)

    torch.distributed.init_process_group = started


set_platform(PlatformCPU())
_name_gloo_once()
