"""Starts a command as a process group, and ends all of it when this process's parent is gone, however it ended.

    python -m training.engines.supervisor COMMAND ARGUMENT …

Its standard input is a pipe that the parent holds and never writes to: when it closes, the parent has ended. So no
training goes on, on GPUs that somebody else is given, when the flow that started it was killed. Ends with the
command's exit status; with 128 and the signal's number where a signal ended it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

GRACE_S = 20.0
"""Seconds between asking the group to end and killing it."""


def main() -> int:
    """Run the command and return its exit status."""
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: _signal(child, received))
    threading.Thread(target=_watch_parent, args=(child,), daemon=True).start()
    status = child.wait()
    _signal(child, signal.SIGKILL)  # whatever it left behind
    return status if status >= 0 else 128 - status


def _watch_parent(child: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        while os.read(0, 1):
            pass
    _signal(child, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        child.wait(GRACE_S)
    _signal(child, signal.SIGKILL)


def _signal(child: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


if __name__ == "__main__":
    sys.exit(main())
