"""Run a server that ends with the process that started it: ``python child_server.py COMMAND…``.

This small process stands between a run and a server. It reads its standard input, which the run holds open and never
writes to: at its end, however the run ended, the server and all processes of its group are killed. Where the server
ends, what is left of its group is killed too, and its status is returned. Where this process is killed, the kernel
kills the server.

It is started by its path and imports nothing of the project, so that it costs little.
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

_DEATH_SIGNAL = 1
"""`PR_SET_PDEATHSIG` of Linux's prctl."""


def main(command: Sequence[str]) -> int:
    """Run the command until it ends or standard input does; return its exit status, 128 + n where a signal ended it."""
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_die_with_parent)
    try:
        _wait(server)
    finally:
        _kill_group(server)
    status = server.wait()
    return status if status >= 0 else 128 - status


def _wait(server: subprocess.Popen[bytes]) -> None:
    """Return once the server has ended, or the parent's end of standard input is gone."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    ended, says_so = os.pipe()
    threading.Thread(target=_tell, args=(server, says_so), daemon=True).start()
    while True:
        readable, _, _ = select.select([ended, 0], [], [])
        if ended in readable or not os.read(0, 1):
            return


def _tell(server: subprocess.Popen[bytes], says_so: int) -> None:
    """Close a descriptor when the server has ended."""
    server.wait()
    os.close(says_so)


def _kill_group(server: subprocess.Popen[bytes]) -> None:
    """Kill the server and all that it started and that has not left its group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, signal.SIGKILL)


def _die_with_parent() -> None:
    with suppress(OSError, AttributeError):  # another system than Linux
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
