"""Temporary folders that are removed even after a kill.

Invariant: a kernel lock protects a folder while its process lives; later processes remove unlocked ones after an hour.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

MIN_AGE_S = 3600.0
"""Seconds without change after which an unlocked folder is removed."""

IN_MEMORY = Path("/dev/shm")

_swept: set[tuple[Path, str]] = set()


class ScratchFolder:
    """An empty temporary folder, until `remove`.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, kind: str, parent: Path | None = None) -> None:
        prefix = f"goldilocks-{kind}-"
        parent = parent or Path(tempfile.gettempdir())
        if (parent, kind) not in _swept:
            _swept.add((parent, kind))
            sweep(parent, prefix)
        self.path = tempfile.mkdtemp(prefix=prefix, dir=parent)
        self._handle: int | None = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def __enter__(self) -> Path:
        return Path(self.path)

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder, once."""
        handle, self._handle = self._handle, None
        if handle is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(handle)

    def give_away(self) -> str:
        """Return the folder, which the caller must remove."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)
        return self.path


def memory_folder() -> Path:
    """Return an in-memory folder, or the temporary one."""
    return IN_MEMORY if IN_MEMORY.is_dir() else Path(tempfile.gettempdir())


def sweep(parent: Path, prefix: str) -> list[Path]:
    """Remove and return this user's unlocked folders."""
    removed = []
    for folder in parent.glob(f"{prefix}*"):
        try:
            status = folder.lstat()
            if status.st_uid != os.getuid() or time.time() - status.st_mtime < MIN_AGE_S:
                continue
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # no folder, or another process was quicker
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # its process lives
            continue
        else:
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(folder)
        finally:
            os.close(handle)
    return removed
