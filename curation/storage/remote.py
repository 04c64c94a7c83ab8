"""File systems at URLs (fsspec), their errors, and kinds of files by their endings."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from urllib.parse import urlsplit

from curation.records import GoldilocksError

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?:::|://)")
LOCAL = re.compile(r"(?:file|local):/{2}")


def is_url(path: str) -> bool:
    """Return whether a path is a remote URL."""
    return URL.match(path) is not None and LOCAL.match(path) is None


FileKind = Literal["jsonl", "parquet", "csv", "dataset"]

KINDS: Mapping[FileKind, set[str]] = {"jsonl": {".jsonl", ".ndjson", ".json"}, "parquet": {".parquet"}, "csv": {".csv"}}
"""File endings by kind of table."""

COMPRESSED = (".gz", ".zst", ".bz2", ".xz")
"""Endings of compressed files."""


def kind_of(path: str) -> FileKind:
    """Return a table's kind by its path's ending; by default a data set."""
    endings = [suffix.lower() for suffix in PurePosixPath(urlsplit(path).path if is_url(path) else path).suffixes]
    last = next((ending for ending in reversed(endings) if ending not in COMPRESSED), "")
    return next((kind for kind, own in KINDS.items() if last in own), "dataset")


def local_path(path: str) -> Path:
    """Return a path's, or ``file`` URL's, local path."""
    return Path(LOCAL.sub("", path, count=1)).expanduser()


def file_system(url: str) -> tuple[Any, str]:
    """Return a URL's file system and path."""
    import fsspec.core

    fs, path = fsspec.core.url_to_fs(url)
    fs.invalidate_cache()
    return fs, path


@contextmanager
def remote_errors(as_error: Callable[[str], GoldilocksError]) -> Iterator[None]:
    """Raise errors of a file system as ours.

    Args:
        as_error: gets a reason that begins with a verb and ends with a full stop.
    """
    try:
        yield
    except GoldilocksError:
        raise
    except Exception as error:
        raise as_error(_reason(error)) from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error."""
    return (str(error).splitlines() or [""])[0]


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError) and isinstance(error.__cause__, Exception):
        error = error.__cause__  # fsspec raises it for any failure over http
    text = first_line(error)
    detail = f" ({text})" if text else ""
    if isinstance(error, IsADirectoryError):
        return f"is a folder; name its files, as in `{text}/*.jsonl`."
    if isinstance(error, zipfile.BadZipFile):
        return f"cannot be opened{detail}: it is damaged or incomplete; fetch it again."
    if isinstance(error, ImportError):
        return f"needs a package that is not installed{detail}; install it in this environment."
    missing = isinstance(error, FileNotFoundError) or type(error).__name__ in ("NoSuchBucket", "NoSuchKey")
    if missing or getattr(error, "status", None) == 404:
        return "is missing; check the address, and whether it may be read from here."
    if isinstance(error, PermissionError) or getattr(error, "status", None) in (401, 403):
        return f"may not be used with this machine's credentials{detail}; see fsspec's documentation on credentials."
    if isinstance(error, ValueError) and "rotocol" in text:
        return f"has a scheme that fsspec does not know{detail}; write it as in `s3://bucket/path`."
    return f"cannot be reached: {type(error).__name__}{f': {text}' if text else ''}{'' if text.endswith('.') else '.'}"
