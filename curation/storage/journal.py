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
        self._places: dict[Name, tuple[int, int]] = {}
        self._end = 0
        self._unsynced = False
        if path.exists():
            self._read_places()

    def __len__(self) -> int:
        return len(self._places)

    @property
    def bytes(self) -> int:
        """Return the size."""
        return self._end

    def names(self) -> Iterator[Name]:
        """Return the names, oldest first."""
        return iter(self._places)

    def add(self, lines: Iterable[tuple[Name, dict[str, Any]]]) -> None:
        """Write lines; raise `StoreError` for existing names."""
        handle = self._writable_handle()
        content = bytearray()
        places: dict[Name, tuple[int, int]] = {}
        for name, line in lines:
            if name in self._places or name in places:
                raise StoreError(f"attempt {name} would be twice in {self.path}.")
            text = json.dumps([*name, line]).encode() + b"\n"
            places[name] = (self._end + len(content), len(text))
            content += text
        handle.seek(self._end)
        handle.write(content)
        self._places |= places
        self._end += len(content)
        self._unsynced = True

    def sync(self) -> None:
        """Flush added lines to disk."""
        if self._unsynced and self._handle is not None:
            os.fsync(self._handle.fileno())
            self._unsynced = False

    def read(self, names: Iterable[Name]) -> Iterator[dict[str, Any]]:
        """Read these lines."""
        if not self._places:
            return
        with self.path.open("rb") as handle:
            for name in names:
                start, size = self._places[name]
                handle.seek(start)
                yield json.loads(handle.read(size))[2]

    def snapshot(self) -> Iterator[tuple[Name, dict[str, Any]]]:
        """Read all lines, also during writing."""
        try:
            with self.path.open("rb") as handle:
                for line in handle:
                    if line.endswith(b"\n"):
                        problem, index, content = json.loads(line)
                        yield (problem, index), content
        except FileNotFoundError:
            return

    def size(self, name: Name) -> int:
        """Return a line's bytes."""
        return self._places[name][1]

    def drop(self, names: Container[Name]) -> None:
        """Remove these lines."""
        remaining = [(name, place) for name, place in self._places.items() if name not in names]
        if len(remaining) == len(self._places):
            return
        self.sync()
        aside = self.path.with_name(f".aside-{self.path.name}")
        places: dict[Name, tuple[int, int]] = {}
        end = 0
        with self.path.open("rb") as old, aside.open("wb") as new:
            for name, (start, size) in remaining:
                old.seek(start)
                new.write(old.read(size))
                places[name] = (end, size)
                end += size
            new.flush()
            os.fsync(new.fileno())
        self.close()
        aside.replace(self.path)
        self._places, self._end = places, end
        if not places:
            self.path.unlink()

    def close(self) -> None:
        """Close the file, until the next `add`."""
        self.sync()
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def _writable_handle(self) -> BinaryIO:
        if not self._writable:
            raise StoreError(f"{self.path} was opened for reading.")
        if self._handle is None:
            self._handle = self.path.open("r+b" if self.path.exists() else "w+b", buffering=0)
        return self._handle

    def _read_places(self) -> None:
        with self.path.open("rb") as handle:
            for line in handle:
                if not line.endswith(b"\n"):
                    break
                try:
                    problem, index, content = json.loads(line)
                    self._places[problem, index] = (self._end, len(line))
                    if not isinstance(content, dict):
                        raise TypeError("no object")
                except (ValueError, TypeError) as error:
                    raise StoreError(
                        f"{self.path} is damaged at byte {self._end} ({error}); remove it; what it held is made again."
                    ) from error
                self._end += len(line)
        if self._writable and self._end < self.path.stat().st_size:
            os.truncate(self.path, self._end)
