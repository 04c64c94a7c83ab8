"""Temporary folders that no killed process leaves behind for good.

Invariants:
  - a folder is locked by the process that made it for as long as that lives; the kernel gives the lock back however it
    ends;
  - the first folder of a kind that a process makes removes those of the same kind that nobody holds any more.

What it does not do: touch folders of other users, or such as are younger than an hour, whose maker may be about to lock
them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

MIN_AGE_S = 3600.0
"""Seconds since its last change after which a folder that nobody holds is taken to be left behind."""

IN_MEMORY = Path("/dev/shm")
"""Where Linux has a file system in memory."""

_swept: set[tuple[str, str]] = set()


class ScratchFolder:
    """An empty folder ``goldilocks-KIND-…`` among the temporary ones, until `remove`.

    Raises:
        OSError: there is no room for a folder, or no right to make one.
    """

    def __init__(self, kind: str) -> None:
        prefix = f"goldilocks-{kind}-"
        where = tempfile.gettempdir()
        if (where, kind) not in _swept:
            _swept.add((where, kind))
            sweep(Path(where), prefix)
        self.path = tempfile.mkdtemp(prefix=prefix, dir=where)
        self._held: int | None = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Remove the folder with what it holds; a second call does nothing."""
        held, self._held = self._held, None
        if held is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(held)


def memory_folder() -> Path:
    """Return the folder of a file system in memory, or where there is none that of temporary files."""
    return IN_MEMORY if IN_MEMORY.is_dir() else Path(tempfile.gettempdir())


def sweep(where: Path, prefix: str) -> list[Path]:
    """Remove the folders of this user that begin so and that nobody holds; returns which."""
    gone = []
    for folder in where.glob(f"{prefix}*"):
        try:
            facts = folder.lstat()
            if facts.st_uid != os.getuid() or time.time() - facts.st_mtime < MIN_AGE_S:
                continue
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # no folder, or another process was quicker
            continue
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # somebody lives
            continue
        else:
            shutil.rmtree(folder, ignore_errors=True)
            gone.append(folder)
        finally:
            os.close(held)
    return gone
