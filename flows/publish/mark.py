"""Mark a published set with its inputs and file hashes; the mark has its own hash."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curation.records import StoreError
from curation.storage.stages import file_digest, read_json, write_json
from flows.run.mirroring import MARK


def read_mark(folder: Path) -> dict[str, Any] | None:
    """Return a set's mark, or None.

    Raises:
        StoreError: it is damaged.
    """
    return read_json(folder / MARK)


def write_mark(folder: Path, made_from: Mapping[str, Any]) -> None:
    """Write a set's mark, with its current files."""
    write_json(folder / MARK, {**made_from, "files": _digests(folder)})


def renew_mark(folder: Path) -> None:
    """Update the files in a set's mark, if any."""
    if (mark := read_mark(folder)) is not None:
        write_mark(folder, mark)


def altered_files(folder: Path, mark: Mapping[str, Any]) -> list[str]:
    """Return the paths of added, removed and changed files."""
    stated, here = mark["files"], _digests(folder)
    return sorted(name for name in {*stated, *here} if stated.get(name) != here.get(name))


def require_unaltered(folder: Path) -> None:
    """Refuse a set with a mark whose files have changed.

    Raises:
        StoreError: a file has changed, or the mark is damaged.
    """
    mark = read_mark(folder)
    if mark is not None and (others := altered_files(folder, mark)):
        raise StoreError(
            f"{folder / others[0]} is not what was published (its hash differs); `goldilocks run` writes the set again."
        )


def _digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MARK)
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in files}
