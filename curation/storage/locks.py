"""Folder locks that end with their process."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from curation.errors import StoreError

_POLL_S = 0.2


@contextmanager
def lock_folder(folder: Path, patience_s: float = 0.0, notify: Callable[[str], None] | None = None) -> Iterator[None]:
    """Lock a folder for the block.

    Args:
        notify: gets a sentence before waiting.

    Raises:
        StoreError: the folder cannot be written, or is locked.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / ".lock").open("a")
    except OSError as error:
        raise StoreError(f"{folder} cannot be made or written ({error.strerror}); give another --out.") from error
    ends, reported = time.monotonic() + patience_s, False
    with handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= ends:
                    raise StoreError(
                        f"{folder} is in use by another run; wait for it or give another --out."
                    ) from error
            if notify is not None and not reported:
                notify(f"{folder} is in use by another process; waiting for it, {patience_s:g} s at most.")
                reported = True
            time.sleep(_POLL_S)
        handle.truncate(0)
        handle.write(f"{os.getpid()}\n")
        handle.flush()
        yield


def lock_holder(folder: Path) -> str:
    """Return the process that last locked a folder."""
    return (folder / ".lock").read_text(encoding="utf-8").strip() or "?"


def is_locked(folder: Path) -> bool:
    """Return whether a process holds the lock."""
    try:
        with (folder / ".lock").open("rb") as handle:  # a reader may have no right to write
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
