"""Shares the GPUs by locked folders that are free once their holder ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from curation.records import StoreError
from curation.storage.locks import lock_folder, lock_holder

POLL_S = 1.0
"""Seconds between attempts to get a slot."""


@contextmanager
def gpu_slot(slots: int, notify: Callable[[str], None]) -> Iterator[int]:
    """Wait for a slot, hold it within the block, and yield its number.

    Args:
        slots: max runs on GPUs.
        notify: called once with the holders, before waiting.
    """
    slots_folder().mkdir(parents=True, exist_ok=True)
    folders = [slots_folder() / f"slot-{number}" for number in range(slots)]
    waits = False
    with ExitStack() as stack:
        while (number := _lock_one(folders, stack)) is None:
            if not waits:
                holders = ", ".join(map(lock_holder, folders))
                notify(f"waits for the GPUs: all {slots} slots are held, by processes {holders}")
            waits = True
            time.sleep(POLL_S)
        yield number


def _lock_one(folders: Sequence[Path], stack: ExitStack) -> int | None:
    for number, folder in enumerate(folders):
        try:
            stack.enter_context(lock_folder(folder))
        except StoreError as error:
            if not isinstance(error.__cause__, BlockingIOError):
                raise
            continue
        return number
    return None


def slots_folder() -> Path:
    """Return the folder of the slots."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "goldilocks" / "gpus"
