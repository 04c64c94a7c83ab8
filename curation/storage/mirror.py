"""Copies of finished folders and logs at a URL.

    MIRROR/curated/5f0c…/…          a finished folder, named by its content
    MIRROR/curated/5f0c….json       its mark: sizes, times and hashes
    MIRROR/curated.json             the newest
    MIRROR/run.json, history.jsonl  logs
    MIRROR/mirror.json              the owner

Invariants: a mark exists only while its files are complete; obsolete folders are removed last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from curation.records import StoreError
from curation.storage.remote import file_system, remote_errors
from curation.storage.stages import file_digest

OWNER = "mirror.json"
BUCKETS = frozenset(("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci", "hf"))
"""Schemes without folders; making one would create even a misspelt bucket."""


class Mirror:
    """A run's mirror, owned by recipe ``name``.

    Raises:
        StoreError: the URL cannot be reached or written.
    """

    def __init__(self, url: str, name: str) -> None:
        self.url, self._name = url.rstrip("/"), name
        self._logs: dict[Path, str] = {}  # digests of copied logs
        self._errors = partial(remote_errors, lambda reason: StoreError(f"storage.mirror = {self.url!r} {reason}"))
        with self._errors():
            self._fs, self._root = file_system(self.url)

    def claim(self) -> None:
        """Refuse a mirror of another recipe."""
        with self._errors():
            owner = (self._read(OWNER) or {}).get("recipe", self._name)
            if owner != self._name:
                raise StoreError(
                    f"storage.mirror = {self.url!r} holds a run of recipe `{owner}`, not `{self._name}`; give another "
                    "URL."
                )
            self._write(OWNER, json.dumps({"recipe": self._name}).encode())

    def copy_logs(self, folder: Path, names: Sequence[str]) -> None:
        """Copy the named files that exist."""
        with self._errors():
            for name in names:
                file = folder / name
                if file.is_file() and self._logs.get(file) != (digest := file_digest(file)):
                    self._write(name, file.read_bytes())
                    self._logs[file] = digest

    def copy_folders(self, kind: str, folders: Mapping[str, Path]) -> None:
        """Copy a kind's missing folders, by unique names, oldest first; remove all others."""
        with self._errors():
            for name, folder in folders.items():
                self._copy(f"{kind}/{name}", folder)
            copied = [name for name in folders if self._read(f"{kind}/{name}.json") is not None]
            if not copied:
                return
            if (self._read(f"{kind}.json") or {}).get("newest") != copied[-1]:
                self._write(f"{kind}.json", json.dumps({"newest": copied[-1]}).encode())
            self._fs.invalidate_cache()
            remote = {str(path).rstrip("/").rpartition("/")[2] for path in self._fs.ls(self._at(kind), detail=False)}
            for name in {name.removesuffix(".json") for name in remote} - folders.keys():
                self._remove(f"{kind}/{name}")

    def _copy(self, name: str, folder: Path) -> None:
        stored = self._read(f"{name}.json")
        files, digests = _files(folder), {}
        if not files or (stored is not None and stored.get("files") == files):
            return
        self._remove(name)
        try:
            for file, (size, _) in files.items():
                path = self._at(f"{name}/{file}")
                digests[file] = file_digest(folder / file)
                self._make_parent(path)
                self._fs.put_file(str(folder / file), path)
                if (arrived := self._fs.info(path)["size"]) != size:
                    raise OSError(f"{arrived:,} bytes of {size:,} arrived of {file}")
        except FileNotFoundError:
            if folder.is_dir():
                raise
            return  # it was removed meanwhile
        if files == _files(folder):
            self._write(f"{name}.json", json.dumps({"files": files, "digests": digests}, indent=1).encode())

    def _remove(self, name: str) -> None:
        for path in (f"{name}.json", name):
            if self._fs.exists(self._at(path)):
                self._fs.rm(self._at(path), recursive=path == name)

    def _write(self, name: str, content: bytes) -> None:
        path = self._at(name)
        self._make_parent(path)
        with self._fs.transaction:
            self._fs.pipe_file(path, content)

    def _make_parent(self, path: str) -> None:
        protocol = self._fs.protocol
        if not BUCKETS.intersection((protocol,) if isinstance(protocol, str) else protocol):
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            content = json.loads(self._fs.cat_file(self._at(name)))
        except FileNotFoundError:
            return None
        except ValueError:
            return {}
        return content if isinstance(content, dict) else {}

    def _at(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"


def _files(folder: Path) -> dict[str, list[int]]:
    try:
        states = {path: path.stat() for path in sorted(folder.rglob("*")) if path.is_file()}
    except FileNotFoundError:
        return {}
    return {path.relative_to(folder).as_posix(): [state.st_size, state.st_mtime_ns] for path, state in states.items()}
