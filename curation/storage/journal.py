"""An append-only file of named JSON lines, for one writer and many readers.

Invariants: kill -9 loses no added line, a power cut no synced one; opening for writing cuts off a torn line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from curation.records import StoreError

Name = tuple[str, int]
"""Problem and index."""


class Journal:
    """A file's lines, by (problem, index).

    Raises:
        StoreError: it is damaged.
    """

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self._writable = writable
        self._handle: BinaryIO | None = None
        self.spans = {name: span for name, span, _ in self._lines()}
        """Start and size of each line, oldest first."""
        self.bytes = sum(size for _, size in self.spans.values())
        """The size of all whole lines."""
        if writable and path.exists() and self.bytes < path.stat().st_size:
            os.truncate(path, self.bytes)

    def add(self, lines: Iterable[tuple[Name, dict[str, Any]]]) -> None:
        """Write lines; raise `StoreError` for existing names, or if it was opened for reading."""
        if not self._writable:
            raise StoreError(f"{self.path} was opened for reading.")
        content = bytearray()
        spans: dict[Name, tuple[int, int]] = {}
        for name, line in lines:
            if name in self.spans or name in spans:
                raise StoreError(f"attempt {name} would be twice in {self.path}.")
            text = json.dumps([*name, line]).encode() + b"\n"
            spans[name] = (self.bytes + len(content), len(text))
            content += text
        if self._handle is None:
            self.path.touch()
            self._handle = self.path.open("r+b", buffering=0)
        self._handle.seek(self.bytes)  # over what a full disk has torn
        unwritten = memoryview(content)
        while unwritten:  # a nearly full disk takes a part
            unwritten = unwritten[self._handle.write(unwritten) :]
        self.spans |= spans
        self.bytes += len(content)

    def sync(self) -> None:
        """Flush added lines to disk."""
        if self._handle is not None:
            os.fsync(self._handle.fileno())

    def read(self, names: Iterable[Name]) -> Iterator[dict[str, Any]]:
        """Read these lines."""
        if not self.spans:
            return
        with self.path.open("rb") as handle:
            for name in names:
                start, size = self.spans[name]
                handle.seek(start)
                yield json.loads(handle.read(size))[2]

    def snapshot(self) -> dict[Name, dict[str, Any]]:
        """Read all lines, also new ones of another process."""
        return {name: content for name, _, content in self._lines()}

    def drop(self, names: Container[Name]) -> None:
        """Remove these lines; a journal that is open for reading only forgets them."""
        remaining = {name: span for name, span in self.spans.items() if name not in names}
        if len(remaining) == len(self.spans):
            return
        if not self._writable:
            self.spans = remaining
            return
        self.close()
        aside = self.path.with_name(f".aside-{self.path.name}")
        spans: dict[Name, tuple[int, int]] = {}
        end = 0
        with self.path.open("rb") as old, aside.open("wb") as new:
            for name, (start, size) in remaining.items():
                old.seek(start)
                new.write(old.read(size))
                spans[name] = (end, size)
                end += size
            new.flush()
            os.fsync(new.fileno())
        aside.replace(self.path)
        self.spans, self.bytes = spans, end
        if not spans:
            self.path.unlink()

    def close(self) -> None:
        """Close the file, until the next `add`."""
        self.sync()
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def _lines(self) -> Iterator[tuple[Name, tuple[int, int], dict[str, Any]]]:
        """Yield name, (start, size) and content of each whole line."""
        try:
            handle = self.path.open("rb")
        except FileNotFoundError:
            return
        start = 0
        with handle:
            for line in handle:
                if not line.endswith(b"\n"):
                    return
                try:
                    problem, index, content = json.loads(line)
                    if not isinstance(content, dict):
                        raise TypeError("no object")
                except (ValueError, TypeError) as error:
                    raise StoreError(
                        f"{self.path} is damaged at byte {start} ({error}); remove it, and its attempts are made again."
                    ) from error
                yield (problem, index), (start, len(line)), content
                start += len(line)
