"""Keeps the newest compiled programs on disk, up to a number of bytes.

Invariants: failed writes are ignored; thread-safe.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from threading import Lock

from curation.storage.scratch import ScratchFolder
from curation.verify.sandbox import CompileResult

KEPT_BYTES = 256 << 20
BLOCK = 4096
"""Bytes that a result takes at least."""


class KeptPrograms:
    """Compilation results by request digest."""

    def __init__(self, max_bytes: int = KEPT_BYTES) -> None:
        self.max_bytes, self.bytes = max_bytes, 0
        self._results: OrderedDict[str, tuple[CompileResult, int]] = OrderedDict()
        self._folder: ScratchFolder | None = None
        self._lock = Lock()

    def get(self, digest: str) -> CompileResult | None:
        """Return a stored result, without compiler output."""
        with self._lock:
            result, size = self._results.get(digest, (None, 0))
            if result is None:
                return None
            self._results.move_to_end(digest)
            if not result.ok:
                return result
            try:
                return replace(result, artifact=self._file(digest).read_bytes())
            except OSError:  # it was removed
                del self._results[digest]
                self.bytes -= size
                return None

    def put(self, digest: str, result: CompileResult) -> None:
        """Store a result, and remove old ones beyond the limit."""
        size = max(BLOCK, len(result.artifact or b"") + len(result.log))
        bare = replace(result, artifact=None, run=replace(result.run, stdout=b"", stderr=b""))
        with self._lock:
            if size > self.max_bytes or digest in self._results:
                return
            try:
                if result.artifact is not None:
                    self._file(digest).write_bytes(result.artifact)
            except OSError:
                self._remove(digest)
                return
            self._results[digest] = bare, size
            self.bytes += size
            while self.bytes > self.max_bytes:
                oldest, (_, freed) = self._results.popitem(last=False)
                self.bytes -= freed
                self._remove(oldest)

    def close(self) -> None:
        """Remove the folder."""
        with self._lock:
            self._results.clear()
            self.bytes = 0
            if self._folder is not None:
                self._folder.remove()
                self._folder = None

    def _file(self, digest: str) -> Path:
        if self._folder is None:
            self._folder = ScratchFolder("compiled")
        return Path(self._folder.path) / digest

    def _remove(self, digest: str) -> None:
        with contextlib.suppress(OSError):
            self._file(digest).unlink()
