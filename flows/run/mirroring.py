"""Copies of a run's logs and set at its mirror: after each stage, whenever a set was published, and in the end.

A mirror that cannot be written for a while stops no run: a line reports it, the next copy brings what is missing, and
only the end of a run fails where that cannot be done either.

Not here: how copies are made so that nothing half-written counts (`curation.storage.mirror`).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from curation.records import StoreError
from curation.storage.mirror import Finished, Mirror
from flows.run.progress import METRICS, note
from flows.run.run_folder import Run

CURATED = "curated"
"""In the run folder, and of the mirror's sets."""

MARK = ".published.json"
"""In the published set: all that it was made from. Its content changes with that of the set."""

LOGS = ("run.json", "history.jsonl", METRICS, "plan.json", "review.jsonl")


def claim(run: Run) -> None:
    """Refuse a mirror that cannot be written, or that holds another run.

    Raises:
        StoreError: it is one of these.
    """
    if (mirror := _mirror_of(run)) is not None:
        mirror.claim()


def copy(run: Run) -> None:
    """Copy what is new; report it if that cannot be done now."""
    try:
        _copy(run)
    except StoreError as error:
        note(f"not copied: {error}")


@contextmanager
def completed(run: Run) -> Iterator[None]:
    """Bring the mirror up to what the run folder holds when the block ends.

    Raises:
        StoreError: that cannot be done; not where the block itself fails.
    """
    try:
        yield
    finally:
        if sys.exception() is None:
            _copy(run)
        else:
            copy(run)


def _copy(run: Run) -> None:
    mirror = _mirror_of(run)
    if mirror is None:
        return
    mirror.copy_logs(run.folder, LOGS)
    mark = run.folder / CURATED / MARK
    if mark.is_file():
        name = hashlib.blake2b(mark.read_bytes(), digest_size=8).hexdigest()
        mirror.copy_folders(CURATED, [Finished(name, run.folder / CURATED)])


def _mirror_of(run: Run) -> Mirror | None:
    url = run.recipe.storage.mirror
    return None if url is None else _opened(url, run.recipe.name, run.folder)


@lru_cache(maxsize=8)
def _opened(url: str, name: str, _folder: Path) -> Mirror:
    """Return a run's mirror, which remembers what it has copied."""
    return Mirror(url, name)
