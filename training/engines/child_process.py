"""Run a command that ends with its parent: ``python child_process.py [--grace=SECONDS] COMMAND…``.

The parent keeps standard input open.
"""

from __future__ import annotations

import ctypes
import os
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

_ENDS = (signal.SIGTERM, signal.SIGINT)


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit status, 128 + n after signal n."""
    grace, command = 0.0, list(arguments)
    if command[0].startswith("--grace="):
        grace = float(command.pop(0).partition("=")[2])
    for number in _ENDS:
        signal.signal(number, _leave)
    die_with_parent = partial(_die_with, os.getpid())
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=die_with_parent)
    try:
        threading.Thread(target=_watch_parent, daemon=True).start()
        status = child.wait()
    finally:
        _end(child, grace)
    return status if status >= 0 else 128 - status


def _watch_parent() -> None:
    while os.read(0, 1):
        pass
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)  # `_leave`, so that `main` ends the command


def _leave(number: int, _: FrameType | None) -> None:
    for other in _ENDS:
        signal.signal(other, signal.SIG_IGN)  # so that `_end` runs once, to its end
    sys.exit(128 + number)


def _end(child: subprocess.Popen[bytes], grace: float) -> None:
    if grace and child.poll() is None:
        _signal(child, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            child.wait(grace)
    _signal(child, signal.SIGKILL)
    child.wait()


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
