"""Copy a run's logs and set to its mirror; only the last copy's failure fails the run."""

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
"""Folder of the sets, in run and mirror."""

MARK = ".published.json"
"""In a published set: its inputs and its files' hashes."""

LOGS = ("run.json", "history.jsonl", METRICS, "plan.json", "review.jsonl")


def claim(run: Run) -> None:
    """Claim the run's mirror.

    Raises:
        StoreError: it cannot be written, or holds another run.
    """
    if (mirror := _mirror_of(run)) is not None:
        mirror.claim()


def copy(run: Run) -> None:
    """Copy what is new; only report a failure."""
    try:
        _copy(run)
    except StoreError as error:
        note(f"not copied: {error}")


@contextmanager
def completed(run: Run) -> Iterator[None]:
    """Complete the mirror when the block ends.

    Raises:
        StoreError: this fails after a successful block.
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
    """Return a run's mirror, cached to remember its copies."""
    return Mirror(url, name)
