"""Defines the sandbox's limits and results, without verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Ending(StrEnum):
    """How one run of a program ended."""

    EXITED = "exited"
    """By itself: see ``exit_code``."""
    SIGNALED = "signaled"
    """By a signal (abort, segmentation fault …): see ``signal``."""
    CPU_LIMIT = "cpu_limit"
    """It used too much CPU time, killed or not."""
    WALL_LIMIT = "wall_limit"
    """It slept or waited past the wall guard."""
    MEMORY_LIMIT = "memory_limit"
    """Its resident memory was too large, killed or not."""
    OUTPUT_LIMIT = "output_limit"
    """It wrote too much to stdout, stderr or files."""
    BROKEN = "broken"
    """The sandbox failed: see ``note``."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one run.

    ``wall_s`` is by default ``3 * cpu_s + 2``, ``memory_mb`` resident MiB, ``output_bytes`` for stdout and stderr each,
    ``file_mb`` MiB in the private /tmp, ``processes`` threads of all processes.
    """

    cpu_s: float = 4.0
    wall_s: float | None = None
    memory_mb: int = 300
    output_bytes: int = 64 << 20
    file_mb: int = 64
    processes: int = 128

    @property
    def wall_guard_s(self) -> float:
        """Return the guard in wall seconds, without waits for a CPU."""
        return 3 * self.cpu_s + 2 if self.wall_s is None else self.wall_s


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended, what it wrote and used.

    ``exit_code`` is for EXITED, ``signal`` for SIGNALED, either for a limit. ``stderr`` is its first 64 KiB, ``cpu_s``
    of all threads, ``memory_mb`` the peak resident MiB.
    """

    ending: Ending
    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    cpu_s: float
    wall_s: float
    memory_mb: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class CompileResult:
    """The file that a compiler wrote, or why not.

    ``log`` is the first 64 KiB each of stderr and stdout; ``run.ending`` is BROKEN if the sandbox failed.
    """

    log: str
    artifact: bytes | None
    run: RunResult

    @property
    def ok(self) -> bool:
        """Return whether there is a file."""
        return self.artifact is not None
