"""Additions to vLLM's workers: they end with the run, and use AMX for bf16 attention."""

from __future__ import annotations

import ctypes
import os
import platform
import select
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _TILE_DATA = 158, 0x1023, 18
"""arch_prctl(2) on x86_64, and the kernel's Documentation/arch/x86/xstate.rst."""


class Worker:
    """Methods for vLLM workers (`worker_extension_cls`)."""

    def follow_process(self, run_process: int, also: Sequence[int] = ()) -> bool:
        """End this worker, its engine and ``also`` with ``run_process``; return False if it cannot be watched."""
        if not hasattr(os, "pidfd_open"):
            return False
        try:
            descriptor = os.pidfd_open(run_process)
        except OSError:
            return False
        parent = os.getppid()
        # with several GPUs, workers are processes below the engine's
        engine = parent if parent != run_process else None
        following = (descriptor, engine, also)
        threading.Thread(target=_end_with, args=following, name="goldilocks-follower", daemon=True).start()
        return True


def _end_with(descriptor: int, engine: int | None, also: Sequence[int]) -> None:
    select.select([descriptor], [], [])
    if engine is not None and os.getppid() == engine:
        also = [*also, engine]
    for process in also:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


if (sys.platform, platform.machine()) == ("linux", "x86_64"):
    ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _TILE_DATA)  # without tiles the kernel refuses
