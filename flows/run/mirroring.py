"""Copy a run's logs and set to its mirror; only the last copy's failure fails the run."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from curation.records import StoreError
from curation.storage.mirror import Mirror
from flows.run.progress import METRICS, print_line
from flows.run.run_folder import Run

CURATED = "curated"  # folder of the sets, in run and mirror
MARK = ".published.json"  # in a published set: its inputs and its files' hashes

LOGS = ("run.json", "history.jsonl", METRICS, "plan.json", "review.jsonl")


_mirror = lru_cache(Mirror)


@contextmanager
def mirrored(run: Run) -> Iterator[None]:
    """Claim the run's mirror, and complete it when the block ends; a failure ends the run."""
    if run.recipe.storage.mirror is not None:
        _mirror(run.recipe.storage.mirror, run.recipe.name).claim()
    try:
        yield
    finally:
        if sys.exception() is None:
            _copy(run)
        else:
            copy(run)


def copy(run: Run) -> None:
    """Copy what is new; only report a failure."""
    try:
        _copy(run)
    except StoreError as error:
        print_line(f"not copied: {error}")


def _copy(run: Run) -> None:
    if run.recipe.storage.mirror is None:
        return
    mirror = _mirror(run.recipe.storage.mirror, run.recipe.name)
    mirror.copy_logs(run.folder, LOGS)
    mark = run.folder / CURATED / MARK
    if mark.is_file():
        name = hashlib.blake2b(mark.read_bytes(), digest_size=8).hexdigest()
        mirror.copy_folders(CURATED, {name: run.folder / CURATED})
