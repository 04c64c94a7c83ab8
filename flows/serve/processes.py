"""Ends a service's processes by a token in their environment, as children outlive parents."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

TOKEN = "GOLDILOCKS_SERVICE"
"""Environment variable of the service's token."""


def processes_of(token: str) -> Iterator[int]:
    """Yield the ids of a service's other processes."""
    mark = f"\0{TOKEN}={token}\0".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        with suppress(OSError):  # it has ended, or is another user's
            if mark in b"\0" + (folder / "environ").read_bytes() + b"\0":
                yield int(folder.name)


def end_processes(token: str) -> int:
    """Kill a service's other processes; return their number."""
    ended: set[int] = set()
    while alive := [process for process in processes_of(token) if process not in ended]:
        for process in alive:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
            ended.add(process)
    return len(ended)


def end_with_parent(token: str | None) -> None:
    """When the parent closes standard input, end the service with this token and this process."""
    with suppress(OSError):
        while os.read(0, 1):
            pass
    if token is not None:
        end_processes(token)
    os._exit(0)
