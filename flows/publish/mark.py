"""The mark of a published set: what it was made from, and the hash of each of its files; it has a hash of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curation.records import StoreError
from curation.storage.stages import file_digest, read_json, write_json
from flows.run.mirroring import MARK


def read_mark(folder: Path) -> dict[str, Any] | None:
    """Return the mark of a set; None if it has none.

    Raises:
        StoreError: it is damaged.
    """
    return read_json(folder / MARK)


def write_mark(folder: Path, made_from: Mapping[str, Any]) -> None:
    """Write the mark of a set with the files that are there."""
    write_json(folder / MARK, {**made_from, "files": _digests(folder)})


def renew_mark(folder: Path) -> None:
    """Write the files of a set into its mark anew, if it has one."""
    if (mark := read_mark(folder)) is not None:
        write_mark(folder, mark)


def altered_files(folder: Path, mark: Mapping[str, Any]) -> list[str]:
    """Return the files of a set that are not those of its mark, by their paths."""
    stated, here = mark["files"], _digests(folder)
    return sorted(name for name in {*stated, *here} if stated.get(name) != here.get(name))


def require_unaltered(folder: Path) -> None:
    """Refuse a set that has a mark, and a file that is not what was published.

    Raises:
        StoreError: there is such a file, or the mark is damaged; the message names it.
    """
    mark = read_mark(folder)
    if mark is not None and (others := altered_files(folder, mark)):
        raise StoreError(
            f"{folder / others[0]} is not what was published (its hash differs); `goldilocks run` writes the set again."
        )


def _digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MARK)
    return {path.relative_to(folder).as_posix(): file_digest(path) for path in files}
