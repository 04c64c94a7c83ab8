"""The bytes of a file, unpacked; where they stop short is told, not raised, so that what was read before is not lost.

Invariants: `opened` raises for a file that is missing or may not be read; a damaged one ends where its last sound byte
does, and says so in `Stream.damage`; no line takes more memory than `LONGEST` bytes.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from curation.records import SourceError

PACKINGS = (".gz", ".zst", ".bz2", ".xz")
LONGEST = 1 << 28
"""Bytes of a line or a row of a text file, and of a file that is one list."""
_PIECE = 1 << 16
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError)
"""What reading a file raises that is damaged, packed or not."""


CUT = "the file cannot be read to its end"
"""How the reason of a damaged file's rest begins."""


class Stream(io.RawIOBase):
    """Bytes of a file, to its end or to where it is damaged."""

    def __init__(self, read: Callable[[int], bytes], ends: str = "") -> None:
        super().__init__()
        self._read, self._ends = read, ends
        self.damage = ""
        """What ended it early; empty where nothing did."""

    @property
    def cut(self) -> str:
        """Return why nothing more is to be had, as a reason."""
        return f"{CUT} ({self.damage})"

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; return how many bytes came, 0 at the end."""
        if self.damage:
            return 0
        try:
            data = self._read(len(buffer))
        except DAMAGE as error:
            self.damage = str(error) or type(error).__name__
            return 0
        if not data:
            self.damage = self._ends
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def opened(path: Path, damage: str = "") -> Iterator[tuple[Stream, io.BufferedReader]]:
    """Open a file, unpacked by its name; give the stream that knows its damage, and its bytes.

    Args:
        damage: what ended the file before its end, where that is known already.

    Raises:
        SourceError: there is none, or it may not be read.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError as error:
        raise SourceError(f"{path}: there is no such file.") from error
    except OSError as error:
        raise SourceError(f"{path}: cannot be opened ({error.strerror}).") from error
    with file:
        stream = Stream(_reading(file, path), damage)
        with io.BufferedReader(stream, _PIECE) as reader:
            yield stream, reader  # type: ignore[misc]  # typeshed's raw streams need not be io.RawIOBase


def _reading(file: io.BufferedReader, path: Path) -> Callable[[int], bytes]:
    """Return what reads up to so many unpacked bytes, none at the end."""
    match path.suffix:
        case ".gz":
            return gzip.GzipFile(fileobj=file, mode="rb").read1
        case ".bz2":
            return bz2.BZ2File(file).read1
        case ".xz":
            return lzma.LZMAFile(file).read1
        case ".zst":
            return _zstandard(path)
    return file.read


def _zstandard(path: Path) -> Callable[[int], bytes]:
    """Return a reader of zstandard; pyarrow's notices a file that was cut short, but loses the bytes just before.

    So what came of a piece that fails is asked for again, a byte at a time.
    """
    import pyarrow

    stream, at = pyarrow.input_stream(str(path), compression="zstd"), 0
    is_damaged = False

    def read(size: int) -> bytes:
        nonlocal stream, at, is_damaged
        try:
            data = bytes(stream.read(1 if is_damaged else min(size, _PIECE)))
        except OSError:
            if is_damaged:
                raise
            is_damaged = True
            stream = pyarrow.input_stream(str(path), compression="zstd")
            for start in range(0, at, _PIECE):
                stream.read(min(_PIECE, at - start))
            return read(size)
        at += len(data)
        return data

    return read


def lines(reader: io.BufferedReader) -> Iterator[tuple[int, bytes, bool]]:
    """Yield the number of each line from 1, its bytes, and whether these are all: at most `LONGEST` are given."""
    for number, line in enumerate(iter(partial(reader.readline, LONGEST), b""), start=1):
        if len(line) < LONGEST or line.endswith(b"\n"):
            yield number, line, True
            continue
        yield number, line, False
        while (more := reader.readline(1 << 20)) and not more.endswith(b"\n"):
            pass
