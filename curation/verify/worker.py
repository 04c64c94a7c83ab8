"""Runs jobs in a worker process, over JSON lines.

Invariants: a step is announced before it begins; the CPU limit is a kernel timer with the default action, which no code
can delay; RLIMIT_AS bounds memory.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from curation.records import Outcome

PR_SET_PDEATHSIG = 1
PROCESS_STATUS = Path("/proc/self/status")


class Guard(Protocol):
    """Announces risky steps.

    ``enter`` returns None if the step may run, until ``leave``, or else the outcome of its earlier failure.
    """

    def enter(self, step: str) -> Outcome | None: ...

    def leave(self) -> None: ...


class PipeGuard:
    """One job's guard in a worker process."""

    def __init__(self, send: Callable[[Any], None], failed_steps: dict[str, str], step_s: float) -> None:
        self._send = send
        self._failed_steps = failed_steps
        self._step_s = step_s

    def enter(self, step: str) -> Outcome | None:
        if step in self._failed_steps:
            return Outcome(self._failed_steps[step])
        self._send({"enter": step})
        signal.setitimer(signal.ITIMER_PROF, self._step_s)
        return None

    def leave(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        self._send({"leave": True})


def die_with_parent(parent: int) -> None:
    """End this process with its parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)


def peak_rss_kib() -> int:
    """Return this program's peak KiB: VmHWM, because ``ru_maxrss`` includes the parent's."""
    try:
        lines = PROCESS_STATUS.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:  # no Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def serve(handler: Callable[[Any, Guard], Any], settings: dict[str, float], channel: int) -> None:
    """Run jobs from stdin, and send their values."""

    def send(message: Any) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(channel, data) :]

    max_rss_kib = settings["memory_mb"] * 1024 / 2
    send({"ready": True})
    for count, line in enumerate(sys.stdin.buffer, 1):
        request = json.loads(line)
        guard = PipeGuard(send, request["written_off"], settings["step_s"])
        value = handler(request["job"], guard)
        needs_replacement = count >= settings["jobs"] or peak_rss_kib() > max_rss_kib
        send({"value": value, "tired": needs_replacement})


def main() -> None:
    """Set limits, import the target, serve."""
    name, settings = sys.argv[1], json.loads(sys.argv[2])
    die_with_parent(int(settings["parent"]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = int(settings["memory_mb"]) << 20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    channel = os.dup(1)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    module, _, function = name.partition(":")
    serve(getattr(importlib.import_module(module), function), settings, channel)


if __name__ == "__main__":
    main()
