"""Rows of a table: files, data sets, Kattis packages or a function."""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from curation.config.sources import Source
from curation.records import SourceError
from curation.sources.files import arrow_rows, raw_rows
from curation.sources.hub import dataset_state, load_dataset
from curation.sources.kattis import find_packages
from curation.sources.own_rows import find_rows, own_rows
from curation.sources.places import MissingSourceError, Place, TableFile, TableState, joined_place, place_of
from curation.sources.procedural import generator_digest, made_rows
from curation.sources.remote import fetched_files
from curation.sources.rows import RawRow
from curation.storage.remote import is_url, local_path
from curation.storage.stages import file_digest


def source_state(source: Source, folder: Path) -> TableState:
    """Return the content of a source and its joined table."""
    own = _table_state(place_of(source), folder)
    if (joined := joined_place(source)) is None:
        return own
    second = _table_state(joined, folder)
    return TableState(f"{own.digest}+{second.digest}", own.commit, second.commit)


def _table_state(place: Place, folder: Path) -> TableState:
    if place.kind == "dataset":
        return dataset_state(place, folder)
    if place.kind == "kattis":
        root = _packages_folder(place, folder)
        files = sorted(file for package in find_packages(root) for file in package.rglob("*") if file.is_file())
        listed = "\n".join(f"{file.relative_to(root)} {file_digest(file)}" for file in files)
        return TableState(hashlib.blake2b(listed.encode(), digest_size=16).hexdigest())
    if place.kind == "python":
        return TableState(find_rows(place.path, folder, place.source).digest)
    if place.made is not None:
        return TableState(generator_digest(place.made, folder))
    return TableState("-".join(file_digest(file.path) for file in table_files(place, folder)))


def table_rows(place: Place, folder: Path, batch_rows: int, columns: Sequence[str] | None = None) -> Iterator[RawRow]:
    """Yield a table's rows in order, readable or not."""
    if place.kind == "dataset":
        yield from _dataset_rows(place, folder, batch_rows, columns)
    elif place.kind == "kattis":
        yield from _package_rows(place, folder)
    elif place.kind == "python":
        yield from own_rows(place.path, folder, place.source)
    elif place.made is not None:
        yield from made_rows(place.made, folder, place.source)
    else:
        for file in table_files(place, folder):
            try:
                for raw in raw_rows(file.path, place.kind, batch_rows):
                    yield replace(raw, path=file.url) if file.url else raw
            except SourceError as error:
                if not file.url:
                    raise
                raise SourceError(str(error).replace(str(file.path), file.url)) from error


def table_files(place: Place, folder: Path) -> list[TableFile]:
    """Return the files of a table's path in order, as local copies.

    Raises:
        MissingSourceError: there are none.
    """
    if is_url(place.path):
        return fetched_files(place.source, place.path)
    pattern = folder / local_path(place.path)
    if pattern.is_file():
        return [TableFile(pattern)]
    paths = sorted(Path(name) for name in glob.glob(str(pattern), recursive=True) if Path(name).is_file())
    if not paths:
        raise MissingSourceError(f"source {place.source}: no file at {pattern}; {_neighbours(pattern)}.")
    return [TableFile(path) for path in paths]


def _dataset_rows(place: Place, folder: Path, batch_rows: int, columns: Sequence[str] | None) -> Iterator[RawRow]:
    start = 1
    dataset = load_dataset(place, folder)
    if columns is not None:
        wanted = [name for name in dataset.column_names if name in columns]
        dataset = dataset.select_columns(wanted or dataset.column_names[:1])  # rows of no column are no rows
    for table in dataset.with_format("arrow").iter(batch_size=batch_rows):
        yield from arrow_rows(place.path, table, start)
        start += table.num_rows


def _package_rows(place: Place, folder: Path) -> Iterator[RawRow]:
    """Yield a row per package with its folder as `package`; tests are read later."""
    for package in find_packages(_packages_folder(place, folder)):
        size = sum(file.stat().st_size for file in (package / "data").rglob("*") if file.is_file())
        content = (package / "problem.yaml").read_bytes()
        yield RawRow(package / "problem.yaml", 1, content, {"package": package}, size=size)


def _packages_folder(place: Place, folder: Path) -> Path:
    root = folder / place.path
    if not root.is_dir():
        raise SourceError(f"source {place.source}: there is no folder {root}.")
    return root


def _neighbours(path: Path) -> str:
    parent = path.parent
    while not parent.is_dir():
        parent = parent.parent
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in parent.iterdir())
    listed = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return f"{parent} holds {listed or 'nothing'}"
