"""Files of a source that lie behind a URL (``s3://``, ``gs://``, ``hf://``, ``https://``: whatever fsspec knows).

A file is fetched once into this machine's cache and read from there. Who may read it is fsspec's own business:
environment, configuration files, roles of the machine. Of a file inside an archive behind a URL
(``zip://rows.jsonl::https://…/rows.zip``) the archive is fetched, since few servers hand out parts of one.

Invariants:
  - what was fetched is read again without another transfer while the place says the same of the file: its ETag,
    version, checksum or, where it has none of these, its time and size. A place that says nothing of it is fetched from
    each time;
  - a copy is whole or not there: it is written aside, flushed, compared with the size that the place states, renamed;
    of a file that is damaged in its archive what comes before the damage, and what that is;
  - paths without a scheme, or with ``file``, are this machine's own files and never copied.

Not here: what the files hold (`curation.sources.rows`), and hub data sets by name (`curation.sources.hub`).
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from curation.public_urls import public_url
from curation.sources.places import MissingSourceError
from curation.storage.remote import file_system, first_line, is_url, local_path, remote_errors
from curation.storage.stages import atomic_replace, atomic_write

CONTENT = (
    *("ETag", "etag", "version_id", "VersionId", "generation", "blob_id", "sha256", "md5Hash", "md5", "Content-MD5"),
    *("Digest", "crc32c", "CRC"),
)
"""What file systems call that which changes with a file's content; one of them is enough."""

TIMES = ("mtime", "LastModified", "last_modified", "Last-Modified", "updated", "last_commit", "created", "date_time")
"""Else when it was written, beside its size."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file at a URL and its copy on this machine; the URL is public (`curation.public_urls`), the request was not.

    Example: ``RemoteFile("s3://bucket/rows.jsonl", Path("~/.cache/goldilocks/sources/5f…/rows.jsonl"))``
    """

    url: str
    path: Path
    damage: str = ""
    """Why the copy ends before the file does."""


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
    inner, _, outer = url.partition("::")
    if "://" in inner and is_url(outer):
        archives = fetched_files(source, outer)
        return [file for one in archives for file in _files_at(source, f"{inner}::{one.path}", f"::{one.url}")]
    return _files_at(source, url, f"::{public_url(outer)}" if outer else "")


def _files_at(source: str, url: str, within: str) -> list[RemoteFile]:
    """Return the files that a URL names; ``within``: what their names end with, that of their archive."""
    with _as_sentence(f"source {source}: {url.partition('::')[0] if within else url}{within}"):
        fs, path = file_system(url)
        is_web = path.startswith(("http://", "https://"))  # whose `?` begins a query
        pattern = path.partition("?")[0] if is_web else path
        found = sorted(fs.glob(path)) if any(mark in pattern for mark in "*?[") else [path]
        files = [one for one in found if len(found) == 1 or fs.isfile(one)]
        if not files:
            raise FileNotFoundError(path)
        archive = _file_state(url.partition("::")[2])
        return [_copy(fs, one, f"{public_url(fs.unstrip_protocol(one))}{within}", archive) for one in files]


def _copy(fs: Any, path: str, url: str, archive: Sequence[int]) -> RemoteFile:
    """Return a file's copy, fetched where there is none of what the place holds now.

    Args:
        url: names the file among all others.
        archive: size and time of the archive on this machine that holds it; empty where there is none.
    """
    info: Mapping[str, Any] = fs.info(path)
    if info.get("type") == "directory":
        raise IsADirectoryError(path)
    folder = cache_folder() / hashlib.blake2b(url.encode(), digest_size=12).hexdigest()
    name = public_url(path).partition("?")[0] if is_url(path) else path
    copy, note = folder / Path(name).name, folder / "state.json"
    state: dict[str, Any] = {"url": url, "size": info.get("size"), "state": _state(info)}
    if archive:
        state["archive"] = list(archive)
    if state["state"] and copy.is_file():
        noted = _read(note) or {}
        if {**noted, "damage": ""} == {**state, "bytes": copy.stat().st_size, "damage": ""}:
            return RemoteFile(url, copy, noted.get("damage", ""))
    note.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    with fs.open(path, "rb") as there, atomic_replace(copy) as here:
        damage = _copy_bytes(there, here)
        here.flush()
        os.fsync(here.fileno())
        if not damage and info.get("size") not in (None, here.tell()):
            raise OSError(f"{here.tell():,} bytes came of {info['size']:,}")
    noted = {**state, "bytes": copy.stat().st_size, **({"damage": damage} if damage else {})}
    atomic_write(note, json.dumps(noted, indent=1) + "\n")
    return RemoteFile(url, copy, damage)


def _copy_bytes(there: Any, here: BinaryIO) -> str:
    """Copy a file to its end, or to where its archive is damaged; return how, empty where it is not."""
    read: Callable[[int], bytes] = getattr(there, "read1", there.read)
    size = 1 << 12 if isinstance(there, zipfile.ZipExtFile) else 1 << 22  # the piece in which it fails is lost
    try:
        while piece := read(size):
            here.write(piece)
    except (zlib.error, zipfile.BadZipFile) as error:
        return str(error)
    return ""


def _file_state(path: str) -> tuple[int, ...]:
    """Return size and time of writing of a file on this machine; empty where there is none."""
    try:
        state = local_path(path).stat() if path and not is_url(path) else None
    except OSError:
        return ()
    return (state.st_size, state.st_mtime_ns) if state is not None else ()


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
