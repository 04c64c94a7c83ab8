"""Locks of folders that end with the process that holds them, however it ends."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from curation.records import StoreError


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock the run folder. A second run on it is refused; the lock ends with the process, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / ".lock").open("w")
    except OSError as error:
        raise StoreError(f"{folder} cannot be made or written ({error.strerror}); give another --out.") from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreError(f"{folder} is in use by another run; wait for it or give another --out.") from error
        yield


def is_locked(folder: Path) -> bool:
    """Return whether somebody holds the folder's lock now."""
    try:
        with (folder / ".lock").open("r+") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
