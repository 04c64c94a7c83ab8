"""Rows of files, data sets, Kattis packages, generators, or a user's function (`kind = "python"`).

Files at fsspec's URLs are copied once into a cache; archives whole. A function runs with the user's rights; its calls
must yield equal rows in order; only its file's digest identifies it.

Invariants: a copy is reused while the server states the same size and ETag, version or checksum, or else time; it is
complete or missing.
"""

from __future__ import annotations

import glob
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from curation.config.sources import Source
from curation.plugins import Plugin, PluginRef, find_plugin
from curation.public_urls import public_url
from curation.records import SourceError
from curation.sources.files import arrow_rows, raw_rows
from curation.sources.hub import dataset_state, load_dataset
from curation.sources.kattis import find_packages
from curation.sources.procedural import generator_digest, made_rows
from curation.sources.rows import MissingSourceError, RawRow, TableState
from curation.storage.remote import file_system, is_url, local_path, remote_errors
from curation.storage.stages import atomic_replace, file_digest

CONTENT = tuple(
    "ETag etag version_id VersionId generation blob_id sha256 md5Hash md5 Content-MD5 Digest crc32c CRC".split()
)
"""File systems' names of values that change with a file's content."""

TIMES = tuple("mtime LastModified last_modified Last-Modified updated last_commit created date_time".split())
"""Names of the time of writing, used if `CONTENT` is missing."""


@runtime_checkable
class RowSource(Protocol):
    """A function that yields rows.

    Example, in `rows.py` next to the recipe::

        from pathlib import Path

        def rows():
            for line in (Path(__file__).parent / "sums.txt").open():
                question, _, total = line.partition("=")
                yield {"question": f"What is {question.strip()}?", "total": total.strip()}
    """

    def __call__(self) -> Iterator[Mapping[str, Any]]:
        """Yield the rows in order."""
        ...


def source_state(source: Source, folder: Path) -> TableState:
    """Return a source's and its joined table's content."""
    own = _table_state(source, folder)
    if source.joined is None:
        return own
    second = _table_state(source.joined, folder)
    return TableState(f"{own.digest}+{second.digest}", own.commit, second.commit)


def _table_state(source: Source, folder: Path) -> TableState:
    if source.kind == "dataset":
        return dataset_state(source, folder)
    if source.kind == "kattis":
        root = _packages_folder(source, folder)
        files = sorted(file for package in find_packages(root) for file in package.rglob("*") if file.is_file())
        listed = "\n".join(f"{file.relative_to(root)} {file_digest(file)}" for file in files)
        return TableState(hashlib.blake2b(listed.encode(), digest_size=16).hexdigest())
    if source.kind == "python":
        return TableState(_function(source, folder).digest)
    if source.is_made:
        return TableState(generator_digest(source, folder))
    return TableState("-".join(file_digest(file) for file in table_files(source, folder)))


def table_rows(source: Source, folder: Path, batch_rows: int, columns: Sequence[str] | None = None) -> Iterator[RawRow]:
    """Yield a table's rows with their positions, readable or not."""
    if source.kind == "dataset":
        rows = _dataset_rows(source, folder, batch_rows, columns)
    elif source.kind == "kattis":
        rows = _package_rows(source, folder)
    elif source.kind == "python":
        rows = _own_rows(source, _function(source, folder).load())
    elif source.is_made:
        rows = made_rows(source, folder)
    else:
        files = table_files(source, folder).items()
        rows = itertools.chain.from_iterable(raw_rows(file, source.kind, batch_rows, url) for file, url in files)
    for position, raw in enumerate(rows):
        raw.position = position
        yield raw


def table_files(source: Source, folder: Path) -> dict[Path, str]:
    """Return the files at a table's path, sorted, with the URLs of local copies.

    Raises:
        MissingSourceError: there are none.
    """
    if is_url(source.path):
        return fetched_files(source.name, source.path)
    pattern = folder / local_path(source.path)
    paths = [pattern] if pattern.is_file() else sorted(map(Path, glob.glob(str(pattern), recursive=True)))
    if not (files := {path: "" for path in paths if path.is_file()}):
        raise MissingSourceError(f"source {source.name}: no file at {pattern}; {_neighbours(pattern)}.")
    return files


def fetched_files(source: str, url: str) -> dict[Path, str]:
    """Return copies of the files at a URL or glob with their URLs, sorted by name.

    Raises:
        MissingSourceError: they cannot be fetched, or a package is missing.
    """
    inner, _, outer = url.partition("::")
    if "://" not in inner or not is_url(outer):
        return _files_at(source, url, f"::{public_url(outer)}" if outer else "")
    archives = fetched_files(source, outer)
    copies = [_files_at(source, f"{inner}::{copy}", f"::{origin}") for copy, origin in archives.items()]
    return {copy: origin for files in copies for copy, origin in files.items()}


def _files_at(source: str, url: str, within: str) -> dict[Path, str]:
    """Return a URL's files; ``within`` ends their URLs."""
    where = f"source {source}: {url.partition('::')[0] if within else url}{within}"
    with remote_errors(lambda reason: MissingSourceError(f"{where} {reason}")):
        fs, path = file_system(url)
        is_web = path.startswith(("http://", "https://"))  # their `?` begins a query
        pattern = path.partition("?")[0] if is_web else path
        paths = sorted(fs.glob(path)) if any(mark in pattern for mark in "*?[") else [path]
        files = [candidate for candidate in paths if len(paths) == 1 or fs.isfile(candidate)]
        if not files:
            raise FileNotFoundError(path)
        archive = local_path(url.partition("::")[2])
        origins = [f"{public_url(fs.unstrip_protocol(file))}{within}" for file in files]
        return {_copy(fs, file, origin, archive): origin for file, origin in zip(files, origins, strict=True)}


def _copy(fs: Any, path: str, url: str, archive: Path) -> Path:
    info: Mapping[str, Any] = fs.info(path)
    if info.get("type") == "directory":
        raise IsADirectoryError(path)
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = caches / "goldilocks" / "sources" / _hash(url)
    name = public_url(path).partition("?")[0] if is_url(path) else path
    stated = next((values for names in (CONTENT, TIMES) if (values := {n: info[n] for n in names if info.get(n)})), {})
    size = info.get("size")
    status = archive.stat() if archive.is_file() else None
    state = [size, stated, status and [status.st_size, status.st_mtime_ns]]
    copy = folder / _hash(json.dumps(state, sort_keys=True, default=str)) / Path(name).name
    if stated and copy.is_file() and size in (None, copy.stat().st_size):
        return copy
    for older in folder.glob("*"):
        if older != copy.parent:
            shutil.rmtree(older, ignore_errors=True)
    with fs.open(path, "rb") as remote, atomic_replace(copy) as local:
        shutil.copyfileobj(remote, local, 1 << 22)
        if size not in (None, local.tell()):
            raise OSError(f"{local.tell():,} bytes of {size:,} arrived")
    return copy


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _dataset_rows(source: Source, folder: Path, batch_rows: int, columns: Sequence[str] | None) -> Iterator[RawRow]:
    dataset = load_dataset(source, folder)
    if columns is not None:
        chosen = [name for name in dataset.column_names if name in columns]
        dataset = dataset.select_columns(chosen or dataset.column_names[:1])  # without columns there are no rows
    return arrow_rows(source.path, dataset.with_format("arrow").iter(batch_size=batch_rows))


def _package_rows(source: Source, folder: Path) -> Iterator[RawRow]:
    for package in find_packages(_packages_folder(source, folder)):
        size = sum(file.stat().st_size for file in (package / "data").rglob("*") if file.is_file())
        content = (package / "problem.yaml").read_bytes()
        yield RawRow(package / "problem.yaml", 1, content, {"package": package}, size=size)


def _function(source: Source, folder: Path) -> PluginRef:
    return find_plugin(source.path, folder, f"source {source.name}", RowSource, "a function that yields rows")


def _own_rows(source: Source, plugin: Plugin) -> Iterator[RawRow]:
    number = 0
    try:
        for number, row in enumerate(plugin.value(), 1):
            is_row = isinstance(row, Mapping) and all(isinstance(column, str) for column in row)
            reason = "" if is_row else f"{str(row)[:80]!r} is no dictionary with names of columns"
            raw, content = (None, dict(row)) if is_row else (repr(row).encode(), None)
            yield RawRow(plugin.path, number, raw, content, reason)
    except Exception as error:
        raise SourceError(f"source {source.name}: {plugin.failure(error)} (making row {number + 1}).") from error


def _packages_folder(source: Source, folder: Path) -> Path:
    root = folder / source.path
    if not root.is_dir():
        raise SourceError(f"source {source.name}: there is no folder {root}.")
    return root


def _neighbours(path: Path) -> str:
    parent = path.parent
    while not parent.is_dir():
        parent = parent.parent
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in parent.iterdir())
    listed = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return f"{parent} holds {listed or 'nothing'}"
