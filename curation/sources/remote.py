"""Source files at fsspec's URLs, copied once into a cache; archives are fetched whole.

Invariants: a copy is reused while the server states the same size and ETag, version or checksum, or else time; it
is complete or missing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curation.public_urls import public_url
from curation.sources.rows import MissingSourceError
from curation.storage.remote import file_system, is_url, local_path, remote_errors
from curation.storage.stages import atomic_replace

CONTENT = tuple(
    "ETag etag version_id VersionId generation blob_id sha256 md5Hash md5 Content-MD5 Digest crc32c CRC".split()
)
"""File systems' names of values that change with a file's content."""

TIMES = tuple("mtime LastModified last_modified Last-Modified updated last_commit created date_time".split())
"""Names of the time of writing, used if `CONTENT` is missing."""


def cache_folder() -> Path:
    """Return the folder of copies, which users may delete."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "goldilocks" / "sources"


def fetched_files(source: str, url: str) -> dict[Path, str]:
    """Return copies of the files at a URL or glob with their URLs, sorted by name.

    Raises:
        MissingSourceError: they cannot be fetched, or a package is missing.
    """
    inner, _, outer = url.partition("::")
    if "://" not in inner or not is_url(outer):
        return _files_at(source, url, f"::{public_url(outer)}" if outer else "")
    archives = fetched_files(source, outer)
    found = [_files_at(source, f"{inner}::{copy}", f"::{origin}") for copy, origin in archives.items()]
    return {copy: origin for files in found for copy, origin in files.items()}


def _files_at(source: str, url: str, within: str) -> dict[Path, str]:
    """Return a URL's files; ``within`` ends their URLs."""
    where = f"source {source}: {url.partition('::')[0] if within else url}{within}"
    with remote_errors(lambda reason: MissingSourceError(f"{where} {reason}")):
        fs, path = file_system(url)
        is_web = path.startswith(("http://", "https://"))  # a `?` of theirs begins a query
        pattern = path.partition("?")[0] if is_web else path
        found = sorted(fs.glob(path)) if any(mark in pattern for mark in "*?[") else [path]
        files = [one for one in found if len(found) == 1 or fs.isfile(one)]
        if not files:
            raise FileNotFoundError(path)
        archive = local_path(url.partition("::")[2])
        origins = [f"{public_url(fs.unstrip_protocol(file))}{within}" for file in files]
        return {_copy(fs, file, origin, archive): origin for file, origin in zip(files, origins, strict=True)}


def _copy(fs: Any, path: str, url: str, archive: Path) -> Path:
    info: Mapping[str, Any] = fs.info(path)
    if info.get("type") == "directory":
        raise IsADirectoryError(path)
    folder = cache_folder() / _hash(url)
    name = public_url(path).partition("?")[0] if is_url(path) else path
    stated = next((found for names in (CONTENT, TIMES) if (found := {n: info[n] for n in names if info.get(n)})), {})
    size = info.get("size")
    status = archive.stat() if archive.is_file() else None
    state = [size, stated, status and [status.st_size, status.st_mtime_ns]]
    copy = folder / _hash(json.dumps(state, sort_keys=True, default=str)) / Path(name).name
    if stated and copy.is_file() and size in (None, copy.stat().st_size):
        return copy
    for older in folder.glob("*"):
        if older != copy.parent:
            shutil.rmtree(older, ignore_errors=True)
    with fs.open(path, "rb") as there, atomic_replace(copy) as here:
        shutil.copyfileobj(there, here, 1 << 22)
        if size not in (None, here.tell()):
            raise OSError(f"{here.tell():,} bytes came of {size:,}")
    return copy


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
