"""A watchdog in vLLM's worker processes: they end when the process that started them ends.

vLLM's asynchronous engine is a process of its own. Measured with vLLM 0.32.0: when its parent is killed with
``kill -9``, it lives on, with all its memory. `Watchdog` is mixed into the worker (`worker_extension_cls`) and watches
the run by a descriptor of its process, which no other process can take over.

It runs inside the engine; nothing here imports vLLM. Where the system has no such descriptors (Linux before 5.3, other
systems), `follow_process` does nothing and says so.
"""

from __future__ import annotations

import os
import select
import signal
import threading


class Watchdog:
    """Methods that a vLLM worker gains; called by `collective_rpc`."""

    def follow_process(self, run_process: int) -> bool:
        """End this worker, and the engine above it, as soon as process ``run_process`` has ended.

        Return False where the system cannot watch it.
        """
        if not hasattr(os, "pidfd_open"):
            return False
        try:
            descriptor = os.pidfd_open(run_process)
        except OSError:
            return False
        parent = os.getppid()
        # with several GPUs, workers are processes below the engine's
        engine = parent if parent != run_process else None
        threading.Thread(target=_end_with, args=(descriptor, engine), name="goldilocks-follower", daemon=True).start()
        return True


def _end_with(descriptor: int, engine: int | None) -> None:
    select.select([descriptor], [], [])
    if engine is not None and os.getppid() == engine:
        os.kill(engine, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
