"""Shares the GPUs by lock files that end with their holder."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

POLL_S = 1.0
"""Seconds between attempts to get a slot."""


@contextmanager
def gpu_slot(slots: int, say: Callable[[str], None]) -> Iterator[int]:
    """Wait for a slot, hold it within the block, and yield its number.

    Args:
        slots: max runs on GPUs.
        say: called once with the holders, before waiting.
    """
    folder = slots_folder()
    folder.mkdir(parents=True, exist_ok=True)
    number, handle = _wait(folder, slots, say)
    with handle:
        handle.truncate(0)
        handle.write(f"{os.getpid()}\n")
        handle.flush()
        yield number


def slots_folder() -> Path:
    """Return the folder of the lock files."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "goldilocks" / "gpus"


def _wait(folder: Path, slots: int, say: Callable[[str], None]) -> tuple[int, IO[str]]:
    told = False
    while True:
        for number in range(slots):
            handle = (folder / f"slot-{number}.lock").open("a+", encoding="utf-8")
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                handle.close()
                continue
            return number, handle
        if not told:
            say(f"waits for the GPUs: all {slots} slots are held, by processes {', '.join(_holders(folder, slots))}")
            told = True
        time.sleep(POLL_S)


def _holders(folder: Path, slots: int) -> list[str]:
    texts = [(folder / f"slot-{number}.lock").read_text(encoding="utf-8").strip() for number in range(slots)]
    return [text or "?" for text in texts]
