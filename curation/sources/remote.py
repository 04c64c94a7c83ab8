"""Source files at fsspec's URLs, copied once into a cache; archives are fetched whole.

Invariants: a copy is reused while the server states the same size and ETag, version or checksum, or else time; it
is complete or missing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from curation.public_urls import public_url
from curation.sources.rows import MissingSourceError, TableFile
from curation.storage.remote import file_system, first_line, is_url, local_path, remote_errors
from curation.storage.stages import atomic_replace

CONTENT = (
    *("ETag", "etag", "version_id", "VersionId", "generation", "blob_id", "sha256", "md5Hash", "md5", "Content-MD5"),
    *("Digest", "crc32c", "CRC"),
)
"""File systems' names of values that change with a file's content."""

TIMES = ("mtime", "LastModified", "last_modified", "Last-Modified", "updated", "last_commit", "created", "date_time")
"""Names of the time of writing, used if `CONTENT` is missing."""


def cache_folder() -> Path:
    """Return the folder of copies, which users may delete."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "goldilocks" / "sources"


def fetched_files(source: str, url: str) -> list[TableFile]:
    """Return copies of the files at a URL or glob, sorted by name.

    Raises:
        MissingSourceError: they cannot be fetched, or a package is missing.
    """
    inner, _, outer = url.partition("::")
    if "://" in inner and is_url(outer):
        archives = fetched_files(source, outer)
        return [file for one in archives for file in _files_at(source, f"{inner}::{one.path}", f"::{one.url}")]
    return _files_at(source, url, f"::{public_url(outer)}" if outer else "")


def _files_at(source: str, url: str, within: str) -> list[TableFile]:
    """Return a URL's files; ``within`` ends their URLs."""
    with _as_sentence(f"source {source}: {url.partition('::')[0] if within else url}{within}"):
        fs, path = file_system(url)
        is_web = path.startswith(("http://", "https://"))  # a `?` of theirs begins a query
        pattern = path.partition("?")[0] if is_web else path
        found = sorted(fs.glob(path)) if any(mark in pattern for mark in "*?[") else [path]
        files = [one for one in found if len(found) == 1 or fs.isfile(one)]
        if not files:
            raise FileNotFoundError(path)
        archive = url.partition("::")[2]
        return [_copy(fs, one, f"{public_url(fs.unstrip_protocol(one))}{within}", archive) for one in files]


def _copy(fs: Any, path: str, url: str, archive: str) -> TableFile:
    info: Mapping[str, Any] = fs.info(path)
    if info.get("type") == "directory":
        raise IsADirectoryError(path)
    folder = cache_folder() / _hash(url)
    name = public_url(path).partition("?")[0] if is_url(path) else path
    stated = next((found for names in (CONTENT, TIMES) if (found := {n: info[n] for n in names if info.get(n)})), {})
    size = info.get("size")
    status = local_path(archive).stat() if archive and not is_url(archive) else None
    state = [size, stated, status and [status.st_size, status.st_mtime_ns]]
    copy = folder / _hash(json.dumps(state, sort_keys=True, default=str)) / Path(name).name
    if stated and copy.is_file() and size in (None, copy.stat().st_size):
        return TableFile(copy, url)
    for older in folder.glob("*"):
        if older != copy.parent:
            shutil.rmtree(older, ignore_errors=True)
    with fs.open(path, "rb") as there, atomic_replace(copy) as here:
        shutil.copyfileobj(there, here, 1 << 22)
        if size not in (None, here.tell()):
            raise OSError(f"{here.tell():,} bytes came of {size:,}")
    return TableFile(copy, url)


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


@contextmanager
def _as_sentence(where: str) -> Iterator[None]:
    with remote_errors(lambda reason: MissingSourceError(f"{where} {reason}")):
        try:
            yield
        except IsADirectoryError as error:
            raise MissingSourceError(
                f"{where} is a folder; name its files, as in `{first_line(error)}/*.jsonl`."
            ) from error
