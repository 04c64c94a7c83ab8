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
    files = {_name(path, folder): file_digest(path) for path in _files(folder)}
    write_json(folder / MARK, {**made_from, "files": files})


def renew_mark(folder: Path) -> None:
    """Write the files of a set into its mark anew, if it has one."""
    if (mark := read_mark(folder)) is not None:
        write_mark(folder, mark)


def altered_files(folder: Path, mark: Mapping[str, Any]) -> list[str]:
    """Return the files of a set that are not those of its mark, by their paths; of an old mark by their sizes."""
    stated, here = mark["files"], {_name(path, folder): path for path in _files(folder)}
    return sorted(name for name in {*stated, *here} if name not in here or not _is_stated(here[name], stated.get(name)))


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


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MARK)


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _is_stated(path: Path, stated: object) -> bool:
    return stated == (path.stat().st_size if isinstance(stated, int) else file_digest(path))
