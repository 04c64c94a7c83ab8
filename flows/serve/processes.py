"""All processes of a service, found by a mark in their environment: children of children too, whoever their parent is.

A process that is killed takes none of its children along, and Prefect's engine goes on without the runner that started
it. So every process of a service carries the service's token in its environment, and whoever sees the service end ends
all that carry it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

TOKEN = "GOLDILOCKS_SERVICE"
"""The environment variable with the service's token."""

REFUSED = 3
"""Exit status of a process of a service that cannot serve what it is asked to, and has printed why."""


def processes_of(token: str) -> Iterator[int]:
    """Yield the ids of the processes that were started with a service's token; this process is left out."""
    mark = f"\0{TOKEN}={token}\0".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        with suppress(OSError):  # it has ended, or is another user's
            if mark in b"\0" + (folder / "environ").read_bytes() + b"\0":
                yield int(folder.name)


def end_processes(token: str) -> int:
    """Kill all processes of a service but this one, and those that they start meanwhile; return how many they were."""
    ended: set[int] = set()
    while alive := [process for process in processes_of(token) if process not in ended]:
        for process in alive:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
            ended.add(process)
    return len(ended)


def end_with_parent(token: str | None) -> None:
    """Wait until the parent's end of standard input is gone, however it ended; then end the service and this process.

    Args:
        token: of the service; None where this process is all of it.
    """
    with suppress(OSError):
        while os.read(0, 1):
            pass
    if token is not None:
        end_processes(token)
    os._exit(0)
