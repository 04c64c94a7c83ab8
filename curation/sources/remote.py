"""Files of a source that lie behind a URL (``s3://``, ``gs://``, ``hf://``, ``https://``: whatever fsspec knows).

A file is fetched once into this machine's cache and read from there. Who may read it is fsspec's own business:
environment, configuration files, roles of the machine.

Invariants:
  - what was fetched is read again without another transfer while the place says the same of the file: its ETag,
    version, checksum or, where it has none of these, its time and size. A place that says nothing of it is fetched from
    each time;
  - a copy is whole or not there: it is written aside, flushed, compared with the size that the place states, renamed;
  - paths without a scheme, or with ``file``, are this machine's own files and never copied.

Not here: what the files hold (`curation.sources.rows`), and hub data sets by name (`curation.sources.hub`).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.sources.places import MissingSourceError
from curation.storage.remote import file_system, first_line, remote_errors
from curation.storage.stages import atomic_replace, atomic_write

CONTENT = (
    *("ETag", "etag", "version_id", "VersionId", "generation", "blob_id", "sha256", "md5Hash", "md5", "Content-MD5"),
    *("Digest", "crc32c"),
)
"""What file systems call that which changes with a file's content; one of them is enough."""

TIMES = ("mtime", "LastModified", "last_modified", "Last-Modified", "updated", "last_commit", "created", "date_time")
"""Else when it was written, beside its size."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file behind a URL and its copy here.

    Example: ``RemoteFile("s3://bucket/rows.jsonl", Path("~/.cache/goldilocks/sources/5f…/rows.jsonl"))``
    """

    url: str
    path: Path


def cache_folder() -> Path:
    """Return where copies lie; they may be deleted, and are fetched again then."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "goldilocks" / "sources"


def fetched_files(source: str, url: str) -> list[RemoteFile]:
    """Return the files that a URL names, in the order of their names; a glob may name several.

    Args:
        source: its name, for errors.

    Raises:
        MissingSourceError: there are none, a package is missing, or this machine may not read them.
    """
    with _as_sentence(f"source {source}: {url}"):
        fs, path = file_system(url)
        found = sorted(fs.glob(path)) if any(mark in path for mark in "*?[") else [path]
        files = [one for one in found if len(found) == 1 or fs.isfile(one)]
        if not files:
            raise FileNotFoundError(path)
        return [RemoteFile(str(fs.unstrip_protocol(one)), _copy(fs, one)) for one in files]


def _copy(fs: Any, path: str) -> Path:
    """Return the copy of a file, fetched where there is none of what the place holds now."""
    info: Mapping[str, Any] = fs.info(path)
    if info.get("type") == "directory":
        raise IsADirectoryError(path)
    url = str(fs.unstrip_protocol(path))
    folder = cache_folder() / hashlib.blake2b(url.encode(), digest_size=12).hexdigest()
    copy, note = folder / Path(path).name, folder / "state.json"
    state = {"url": url, "size": info.get("size"), "state": _state(info)}
    if state["state"] and copy.is_file() and _read(note) == {**state, "bytes": copy.stat().st_size}:
        return copy
    note.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    with fs.open(path, "rb") as there, atomic_replace(copy) as here:
        shutil.copyfileobj(there, here, 1 << 22)
        here.flush()
        os.fsync(here.fileno())
        if info.get("size") not in (None, here.tell()):
            raise OSError(f"{here.tell():,} bytes came of {info['size']:,}")
    atomic_write(note, json.dumps({**state, "bytes": copy.stat().st_size}, indent=1) + "\n")
    return copy


def _state(info: Mapping[str, Any]) -> str:
    """Return what a place says of a file that changes with its content; empty where it says nothing."""
    for names in (CONTENT, TIMES):
        said = {name: str(info[name]) for name in names if info.get(name)}
        if said:
            return json.dumps(said, sort_keys=True)
    return ""


def _read(note: Path) -> Any:
    try:
        return json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


@contextmanager
def _as_sentence(where: str) -> Iterator[None]:
    """Tell what went wrong at a place as one sentence."""
    with remote_errors(lambda reason: MissingSourceError(f"{where} {reason}")):
        try:
            yield
        except IsADirectoryError as error:
            raise MissingSourceError(
                f"{where} is a folder; name its files, as in `{first_line(error)}/*.jsonl`."
            ) from error
