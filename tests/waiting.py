"""Wait for events: until something is there, never for a while that is enough on a quiet machine.

`PATIENCE_S` bounds every wait for what must come. It is so long that no busy machine meets it, and costs nothing: what
must come comes, and a process that ended before it could do its part ends the wait at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Protocol

import psutil

PATIENCE_S = 600.0
TICK_S = 0.005


class Process(Protocol):
    """What can end while others wait for its work: `subprocess.Popen`."""

    def poll(self) -> int | None: ...


def wait_until(condition: Callable[[], object], worker: Process | None = None, tick_s: float = TICK_S) -> None:
    """Return once the condition holds; fail if the worker that should bring it about has ended without it."""
    end = time.monotonic() + PATIENCE_S
    while not condition() and not _ended(worker, condition, end):
        time.sleep(tick_s)


async def until(condition: Callable[[], object], worker: Process | None = None, tick_s: float = TICK_S) -> None:
    """Do as `wait_until`, while the event loop goes on."""
    end = time.monotonic() + PATIENCE_S
    while not condition() and not _ended(worker, condition, end):
        await asyncio.sleep(tick_s)


def wait_gone(processes: Iterable[psutil.Process]) -> None:
    """Return once all these processes have ended."""
    left = list(processes)
    wait_until(lambda: not any(map(is_alive, left)), tick_s=0.02)


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs still; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _ended(worker: Process | None, condition: Callable[[], object], end: float) -> bool:
    """Return whether the worker ended, which must have brought the condition about; fail when patience ends."""
    status = worker.poll() if worker is not None else None
    if status is not None:
        assert condition(), f"the process ended with status {status}, and what was waited for has not come"
        return True
    assert time.monotonic() < end, f"what was waited for did not come within {PATIENCE_S:.0f} s"
    return False
