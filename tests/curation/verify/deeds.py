"""What the workers of `test_worker_pool` do; a module without pytest starts faster."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from curation.verify.worker_pool import Guard


def echo(job: Any, guard: Guard) -> Any:
    return job


def process_id(job: Any, guard: Guard) -> int:
    return os.getpid()


def misbehave(job: dict[str, Any], guard: Guard) -> dict[str, str]:
    """Do each named thing as a step; report how each went."""
    results = {}
    for position, deed in enumerate(job["deeds"]):
        failed = guard.enter(str(position))
        if failed is not None:
            results[f"{position} {deed}"] = failed.value
            continue
        _do(deed)
        guard.leave()
        results[f"{position} {deed}"] = "done"
    return results


def _do(deed: str) -> None:
    if deed.startswith("touch "):
        Path(deed.removeprefix("touch ")).touch()
    if deed == "spin":
        while True:
            pass
    if deed == "sleep":
        time.sleep(3600)
    if deed == "power":
        pow(9, 9**9**2)
    if deed == "memory":
        bytearray(8 << 30)
    if deed == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if deed == "exit":
        os._exit(3)
    if deed == "raise":
        raise ValueError("a bad thing")
    if deed == "print":
        print("noise on stdout " * 10_000)
