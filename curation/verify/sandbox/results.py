"""Decides how a run ended, from what the kernel counted."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import Any

from curation.verify.sandbox.outcomes import Ending, Limits, RunResult
from curation.verify.sandbox.slot import read_file

STDERR_BYTES = 65536
KILLED = {
    "memory": Ending.MEMORY_LIMIT,
    "cpu": Ending.CPU_LIMIT,
    "wall": Ending.WALL_LIMIT,
    "output": Ending.OUTPUT_LIMIT,
    "files": Ending.OUTPUT_LIMIT,
}


def broken_run(note: str) -> RunResult:
    """Return a run of which nothing is known."""
    return RunResult(Ending.BROKEN, None, None, b"", b"", 0.0, 0.0, 0, note)


def worse_than_limits(used: Mapping[str, Any], limits: Limits) -> bool:
    """Return whether compiling already took more memory than a run may."""
    return bool(used["peak_kb"] > limits.memory_mb * 1024)


def _ending(used: Mapping[str, Any], limits: Limits, written: int) -> Ending:
    """Return the ending: the watch's reason, a passed limit, or its own."""
    status = used["status"] & 0xFFFF
    if used["killed"] in KILLED:
        return KILLED[used["killed"]]
    if worse_than_limits(used, limits):
        return Ending.MEMORY_LIMIT
    if used["cpu_s"] > limits.cpu_s:
        return Ending.CPU_LIMIT
    signaled = os.WIFSIGNALED(status)
    if written > limits.output_bytes or (signaled and os.WTERMSIG(status) == signal.SIGXFSZ):
        return Ending.OUTPUT_LIMIT
    return Ending.SIGNALED if signaled else Ending.EXITED


def run_result(used: Mapping[str, Any], limits: Limits, stdout: int = -1, stderr: int = -1) -> RunResult:
    """Return the `RunResult` of `Watch.wait` and the program's files."""
    if used.get("failed"):
        return broken_run(used["failed"])
    status = used["status"] & 0xFFFF
    sizes = used.get("sizes") or [os.fstat(output).st_size if output >= 0 else 0 for output in (stdout, stderr)]
    note = {"processes": f"more than {limits.processes} threads", "files": f"more than {limits.file_mb} MiB in /tmp"}
    return RunResult(
        ending=_ending(used, limits, max(sizes)),
        exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        stdout=read_file(stdout, min(sizes[0], limits.output_bytes)) if sizes[0] else b"",
        stderr=read_file(stderr, min(sizes[1], STDERR_BYTES)) if sizes[1] else b"",
        cpu_s=used["cpu_s"],
        wall_s=used["wall_s"],
        memory_mb=-(-used["peak_kb"] // 1024),
        note=note.get(used["killed"], ""),
    )
