"""Wait for, then kill, what a killed verl run left on this Linux machine.

The run's folder in their environment identifies its processes.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from training.engines.processes import PATIENCE_S
from training.engines.verl.configuration import RECIPE_VARIABLE

_LOOK_S = 0.2


def processes_of(out: Path) -> list[int]:
    """Return the other processes of the run in ``out``, by ascending id."""
    variable, found = f"{RECIPE_VARIABLE}=".encode(), []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # another user's, or one that has just ended
            told = [entry for entry in file.read_bytes().split(b"\0") if entry.startswith(variable)]
            if told and json.loads(told[0][len(variable) :])["out"] == str(out):
                found.append(int(file.parent.name))
    return sorted(set(found) - {os.getpid()})


def await_leftovers(out: Path, say: Callable[[str], None], patience_s: float = PATIENCE_S) -> None:
    """Wait for an earlier start's processes; kill those left after ``patience_s``.

    Args:
        out: absolute; no one else starts the run meanwhile.
    """
    left, ends = processes_of(out), time.monotonic() + patience_s
    if left:
        say(
            f"{out}: {len(left)} processes of this run's earlier start are still ending (the eldest is {left[0]}); it "
            f"goes on when they are gone, in {patience_s:g} s at the latest."
        )
    while left and time.monotonic() < ends:
        time.sleep(_LOOK_S)
        left = processes_of(out)
    if left:
        say(f"{out}: {len(left)} of them did not end by themselves and are killed.")
    while left:
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_LOOK_S)
        left = processes_of(out)
