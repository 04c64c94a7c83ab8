"""A fixed share of a processor for processes, by the kernel's own quota (control groups, version 1; as root).

A share is both a ceiling and, as long as the shares of all fit on the machine, a floor: its group weighs so much that
whatever else runs here takes nothing from it. So a server with .6 of a core has what a machine that is its own would
give it, however many stand beside it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

ROOT = Path("/sys/fs/cgroup/cpu")
PERIOD_US, WEIGHT = 20_000, 2**18
"""Microseconds over which a share is measured out, and the most that a group may weigh; a process weighs 1,024."""


def missing() -> str:
    """Return why no share can be given here; empty where one can."""
    if os.access(ROOT / "cgroup.procs", os.W_OK):
        return ""
    return f"{ROOT} is not there or not writable: a share of a processor needs control groups (version 1) and root"


class CpuShare:
    """A group of processes with a share of a core. A context manager; leaving it lets those that still live run freely.

    Args:
        name: of the group, unique on the machine.
        share: of one core; None: as much as there is, ahead of what else runs here.
    """

    def __init__(self, name: str, share: float | None) -> None:
        self._folder = ROOT / f"goldilocks-{os.getpid()}-{name}"
        self._share = share

    def __enter__(self) -> Self:
        self._folder.mkdir()
        (self._folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (self._folder / "cpu.shares").write_text(str(WEIGHT))
        if self._share is not None:
            (self._folder / "cpu.cfs_quota_us").write_text(str(int(self._share * PERIOD_US)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pid in (self._folder / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                (ROOT / "cgroup.procs").write_text(pid)
        self._folder.rmdir()

    def add(self, processes: Iterable[psutil.Process]) -> None:
        """Put processes into the group, with all their threads; what they start later is in it too."""
        for process in processes:
            (self._folder / "cgroup.procs").write_text(str(process.pid))

    def throttled_s(self) -> float:
        """Return the seconds so far for which the group had used up its share and something in it wanted to run."""
        rows = dict(line.split() for line in (self._folder / "cpu.stat").read_text().splitlines())
        return int(rows["throttled_time"]) / 1e9
