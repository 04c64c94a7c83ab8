"""Run a command that ends with its parent: ``python child_process.py [--grace=SECONDS] COMMAND…``.

The parent holds standard input open until then. Imports nothing of the project.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from types import FrameType

_DEATH_SIGNAL = 1
"""Linux's `PR_SET_PDEATHSIG`."""


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status, 128 + n after signal n."""
    grace, command = 0.0, list(arguments)
    if command[0].startswith("--grace="):
        grace = float(command.pop(0).partition("=")[2])
    die_with_parent = partial(_die_with, os.getpid())
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=die_with_parent)
    try:
        _wait(child)
    finally:
        _end(child, grace)
    status = child.wait()
    return status if status >= 0 else 128 - status


def _wait(child: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    ended, says_so = os.pipe()
    threading.Thread(target=_tell, args=(child, says_so), daemon=True).start()
    while True:
        readable, _, _ = select.select([ended, 0], [], [])
        if ended in readable or not os.read(0, 1):
            return


def _tell(child: subprocess.Popen[bytes], says_so: int) -> None:
    child.wait()
    os.close(says_so)


def _leave(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


def _end(child: subprocess.Popen[bytes], grace: float) -> None:
    if grace and child.poll() is None:
        _signal(child, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            child.wait(grace)
    _signal(child, signal.SIGKILL)


def _signal(child: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def _die_with(parent: int) -> None:
    with suppress(OSError, AttributeError):  # another system than Linux
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
