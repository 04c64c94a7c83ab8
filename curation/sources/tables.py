"""Rows of a table wherever it lies: files, also behind URLs, a folder that `datasets` reads, or a data set of the hub.

Invariants: rows come in the table's order; a file or data set that is missing, broken or of another kind is one
`SourceError`, which names a file by its URL where it has one. Not here: what columns mean, and which rows are taken.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from curation.sources.files import raw_rows
from curation.sources.hub import load_dataset
from curation.sources.places import MissingSourceError, Place
from curation.sources.remote import RemoteFile, fetched_files
from curation.sources.rows import RawRow, Row, arrow_rows
from curation.storage.remote import is_url, local_path
from curation.storage.stages import file_digest


@dataclass(frozen=True, slots=True)
class TableState:
    """What a table held when it was read: a hash of its content and, of a hub set, its commit; of a joined one, too."""

    digest: str
    commit: str | None = None
    joined_commit: str | None = None


def table_state(place: Place, folder: Path) -> TableState:
    """Return what a table holds: file contents, or a data set's commit and digest."""
    if place.kind == "dataset":
        loaded = load_dataset(place, folder)
        return TableState(loaded.digest, loaded.commit)
    return TableState("-".join(file_digest(path) for path in place_files(place, folder)))


def table_rows(place: Place, folder: Path, batch_rows: int, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """Yield the rows of a table.

    Args:
        columns: as in `raw_table_rows`.

    Raises:
        BadRowError: one cannot be read.
    """
    return (raw.read() for raw in raw_table_rows(place, folder, batch_rows, columns))


def raw_table_rows(
    place: Place, folder: Path, batch_rows: int, columns: Sequence[str] | None = None
) -> Iterator[RawRow]:
    """Yield the rows beside the bytes that they were, in order, those that cannot be read too.

    Args:
        columns: top-level columns that are enough, where the table's kind can read some alone; absent ones are no
            error here.
    """
    if place.kind == "dataset":
        yield from _dataset_rows(place, folder, batch_rows, columns)
        return
    for file in _files(place, folder):
        for raw in raw_rows(file.path, place.kind, batch_rows, file.damage):
            yield raw if not file.url else replace(raw, path=file.url)


def place_files(place: Place, folder: Path) -> list[Path]:
    """Return the files that a table's path names, in order; of those behind URLs the copies.

    Raises:
        MissingSourceError: there are none.
    """
    return [file.path for file in _files(place, folder)]


def _files(place: Place, folder: Path) -> list[RemoteFile]:
    if is_url(place.path):
        return fetched_files(place.source, place.path)
    return [RemoteFile("", path) for path in _local_files(place, folder)]


def _local_files(place: Place, folder: Path) -> list[Path]:
    pattern = local_path(place.path)
    pattern = pattern if pattern.is_absolute() else folder / pattern
    if pattern.is_file():
        return [pattern]
    paths = sorted(Path(name) for name in glob.glob(str(pattern), recursive=True) if Path(name).is_file())
    if not paths:
        raise MissingSourceError(f"source {place.source}: no file at {pattern}; {_neighbours(pattern)}.")
    return paths


def _dataset_rows(
    place: Place, folder: Path, batch_rows: int, columns: Sequence[str] | None = None
) -> Iterator[RawRow]:
    """Yield the rows of a data set; one that holds bytes that are no text, as its files may, without its content."""
    path, start = Path(place.path), 1
    dataset = load_dataset(place, folder).dataset
    if columns is not None:
        wanted = [name for name in dataset.column_names if name in columns]
        dataset = dataset.select_columns(wanted or dataset.column_names[:1])  # rows of no column are no rows
    for table in dataset.with_format("arrow").iter(batch_size=batch_rows):
        yield from arrow_rows(path, table, start)
        start += table.num_rows


def _neighbours(path: Path) -> str:
    parent = path.parent
    while not parent.is_dir():
        parent = parent.parent
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in parent.iterdir())
    listed = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return f"{parent} holds {listed or 'nothing'}"
