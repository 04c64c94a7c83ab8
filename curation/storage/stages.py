"""Stage folders of parquet shards::

    kept/00000.parquet  dropped/00000.parquet  …   a folder per table, a file per shard
    shards/00000.json                              the shard's mark: counts, sizes, hashes
    DONE.json                                      the manifest: counts and hashes

Invariants:
  - files are synced and renamed; a mark follows its files, the manifest all marks;
  - a folder with another fingerprint (name, code version, settings, inputs) is discarded;
  - in = kept + dropped, per shard and stage;
  - the manifest's digest covers content only: an equal result reruns no later stage.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from curation.records import StoreError

FORMAT = 1
"""Layout version of the folders; others are refused."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard's tables and number of incoming rows."""

    rows_in: int
    tables: Mapping[str, pl.DataFrame]
    kept_rows: int | None = None
    notes: Mapping[str, int] = field(default_factory=dict)

    @property
    def kept(self) -> int:
        """Return the number of kept rows."""
        if self.kept_rows is not None:
            return self.kept_rows
        return self.tables["kept"].height if "kept" in self.tables else 0

    @property
    def dropped(self) -> int:
        """Return the number of dropped rows."""
        return self.tables["dropped"].height if "dropped" in self.tables else 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """A finished stage in numbers: DONE.json."""

    stage: str
    fingerprint: str
    digest: str
    shards: int
    rows_in: int
    kept: int
    dropped: int
    reasons: Mapping[str, int]
    notes: Mapping[str, int]
    inputs: Mapping[str, str]


class StageFolder:
    """One stage's folder."""

    def __init__(self, folder: Path, name: str, version: str, settings: str, inputs: Mapping[str, str]) -> None:
        self.folder = folder
        self.name = name
        self._identity = {
            "format": FORMAT,
            "stage": name,
            "version": version,
            "settings": settings,
            "inputs": dict(sorted(inputs.items())),
        }
        self.fingerprint = table_digest(self._identity)

    def prepare(self) -> None:
        """Remove half-written files, and another fingerprint's."""
        identity = self.folder / "stage.json"
        stored = read_json(identity)
        if stored != self._identity and self.folder.exists():
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        for leftover in self.folder.rglob(".aside-*"):
            leftover.unlink()
        if stored != self._identity:
            write_json(identity, self._identity)

    def discard(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def reopen(self) -> None:
        """Remove the manifest, to write more shards."""
        (self.folder / "DONE.json").unlink(missing_ok=True)

    def note(self, note: str) -> int:
        """Return a note's sum over finished shards."""
        marks = (mark for mark in finished_shards(self.folder) if mark["fingerprint"] == self.fingerprint)
        return sum(int(mark["notes"].get(note, 0)) for mark in marks)

    def manifest(self) -> Manifest | None:
        """Return the manifest if the stage is complete."""
        manifest = read_manifest(self.folder)
        if manifest is None or manifest.fingerprint != self.fingerprint:
            return None
        is_whole = all(self.is_finished(index) for index in range(manifest.shards))
        return manifest if is_whole else None

    def is_finished(self, index: int) -> bool:
        """Return whether the shard is complete."""
        mark = read_json(_mark_of(self.folder, index))
        if mark is None or mark["fingerprint"] != self.fingerprint:
            return False
        files = [(self.folder / entry["file"], entry["bytes"]) for entry in mark["tables"].values()]
        return all(file.is_file() and file.stat().st_size == size for file, size in files)

    def write(self, index: int, shard: Shard) -> None:
        """Write a shard.

        Raises:
            StoreError: the rows do not add up.
        """
        if shard.rows_in != shard.kept + shard.dropped:
            raise StoreError(
                f"stage {self.name}, shard {index}: {shard.rows_in} rows went in, {shard.kept} were kept and "
                f"{shard.dropped} dropped; a row was lost or made. This is a defect of the stage: please report it."
            )
        tables = {}
        for table, frame in shard.tables.items():
            file = f"{table}/{index:05}.parquet"
            tables[table] = {"file": file, "rows": frame.height, **write_parquet(self.folder / file, frame)}
        for table in (read_json(_mark_of(self.folder, index)) or {"tables": {}})["tables"].keys() - tables.keys():
            (self.folder / table / f"{index:05}.parquet").unlink(missing_ok=True)  # of an earlier version of the shard
        mark = {
            "fingerprint": self.fingerprint,
            "in": shard.rows_in,
            "kept": shard.kept,
            "dropped": shard.dropped,
            "reasons": _count_reasons(shard.tables.get("dropped")),
            "notes": dict(sorted(shard.notes.items())),
            "tables": tables,
        }
        write_json(_mark_of(self.folder, index), mark)

    def close(self, shards: int, rows_in: int | None = None) -> Manifest:
        """Write the manifest.

        Raises:
            StoreError: a shard or rows are missing.
        """
        marks = [read_json(_mark_of(self.folder, index)) for index in range(shards)]
        missing = [index for index, mark in enumerate(marks) if mark is None]
        if missing:
            raise StoreError(f"stage {self.name} in {self.folder}: shards {missing[:5]} have no mark; run again.")
        present: list[dict[str, Any]] = [mark for mark in marks if mark is not None]
        total = {key: sum(int(mark[key]) for mark in present) for key in ("in", "kept", "dropped")}
        if rows_in is not None and total["in"] != rows_in:
            raise StoreError(
                f"stage {self.name}: {rows_in} rows went in, its shards took {total['in']}; "
                "rows were lost between the stages. This is a defect: please report it."
            )
        manifest = {
            **self._identity,
            "fingerprint": self.fingerprint,
            "digest": _digest(json.dumps([mark["tables"] for mark in present], sort_keys=True).encode()),
            "shards": shards,
            **total,
            "reasons": add_counts(mark["reasons"] for mark in present),
            "notes": add_counts(mark["notes"] for mark in present),
        }
        write_json(self.folder / "DONE.json", manifest)
        return _as_manifest(manifest)


def _mark_of(folder: Path, index: int) -> Path:
    return folder / "shards" / f"{index:05}.json"


def read_shard(folder: Path, table: str, index: int, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Return a table's shard."""
    file = sound_table(folder / table / f"{index:05}.parquet")
    return pl.read_parquet(file, columns=None if columns is None else list(columns), glob=False)


def table_files(folder: Path, table: str) -> list[Path]:
    """Return a finished table's files.

    Raises:
        StoreError: one is damaged or missing.
    """
    return [sound_table(file) for file in sorted((folder / table).glob("[0-9]*.parquet"))]


def sound_table(file: Path) -> Path:
    """Return a table's file after checking its hash."""
    mark = read_json(_mark_of(file.parents[1], int(file.stem)))
    require_hash(file, None if mark is None else mark["tables"].get(file.parent.name, {}).get("hash"))
    return file


def require_hash(file: Path, digest: str | None) -> None:
    """Check a file's existence and, once per process, its hash or the first letters of it."""
    try:
        state = _state_of(file)
        if digest is None or _sound.get(file, (None,)) == (digest, *state):
            return
        is_sound = file_digest(file).startswith(digest)
    except FileNotFoundError as error:
        raise StoreError(f"{file} is missing; run the recipe again.") from error
    if not is_sound:
        raise StoreError(
            f"{file} is damaged: its content is not what was written (the hash differs); delete it and run the recipe "
            "again, and it is made again."
        )
    _sound[file] = (digest, *state)


def note_hash(file: Path, digest: str) -> None:
    """Remember a new file's hash."""
    _sound[file] = (digest, *_state_of(file))


_sound: dict[Path, tuple[object, ...]] = {}
"""Verified files: the hash, inode, size and time of each."""


def _state_of(file: Path) -> tuple[int, int, int]:
    state = file.stat()
    return state.st_ino, state.st_size, state.st_mtime_ns


def read_optional_shard(folder: Path, table: str, index: int) -> pl.DataFrame | None:
    """Return a table's shard, or None."""
    return read_shard(folder, table, index) if (folder / table / f"{index:05}.parquet").exists() else None


def read_table(
    folder: Path, table: str, columns: list[str] | None = None, where: pl.Expr | None = None
) -> pl.DataFrame:
    """Return a whole table, or an empty frame."""
    frames = (pl.read_parquet(file, columns=columns, glob=False) for file in table_files(folder, table))
    return pl.concat([frame if where is None else compact(frame.filter(where)) for frame in frames] or [pl.DataFrame()])


def compact(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a copy with its own texts; rows chosen from a frame keep all texts of that frame in memory."""
    return pl.read_ipc(frame.write_ipc(None, compat_level=pl.CompatLevel.oldest()).getvalue())


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of any fingerprint."""
    content = read_json(folder / "DONE.json")
    if content is None:
        return None
    if content.get("format") != FORMAT:
        raise StoreError(
            f"{folder / 'DONE.json'}: layout {content.get('format')}, this version reads {FORMAT}; use a new folder."
        )
    return _as_manifest(content)


def _as_manifest(content: Mapping[str, Any]) -> Manifest:
    return Manifest(**{name: content["in" if name == "rows_in" else name] for name in Manifest.__slots__})


def finished_shards(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a stage's marks, even before its end."""
    for file in sorted((folder / "shards").glob("[0-9]*.json")):
        mark = read_json(file)
        if mark is not None:
            yield mark


def write_parquet(path: Path, frame: pl.DataFrame) -> dict[str, int | str]:
    """Write a frame aside and rename it; return bytes and hash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.parent / f".aside-{path.name}"
    # one chunk, so that equal rows are equal bytes
    try:
        frame.rechunk().write_parquet(aside, compression="zstd", compression_level=3, statistics=True)
    except pl.exceptions.ComputeError as error:
        raise (system_error(error, aside) or error) from error
    with aside.open("rb") as handle:
        os.fsync(handle.fileno())
    digest = file_digest(aside)
    aside.rename(path)
    note_hash(path, digest)
    return {"bytes": path.stat().st_size, "hash": digest}


def system_error(error: Exception, path: Path | None = None) -> OSError | None:
    """Return the system error that a Rust error names."""
    match = re.search(r"\(os error (\d+)\)", str(error))
    return None if match is None else OSError(int(match[1]), os.strerror(int(match[1])), path and str(path))


def atomic_write(path: Path, text: str) -> None:
    """Write a text file, sync and rename it."""
    with atomic_replace(path) as file:
        file.write(text.encode())


@contextmanager
def atomic_replace(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that is synced and replaces the target after the block.

    Raises:
        StoreError: it cannot be written.
    """
    if path.is_dir():
        raise StoreError(f"{path} is a folder; name the file to write.")
    aside = path.parent / f".aside-{path.name}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = aside.open("wb")
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise StoreError(f"{path} cannot be written ({error.strerror}); give another path.") from error
    try:
        with handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def require_outside(out: Path, *inputs: Path) -> None:
    """Refuse an output that is an input, or in an input folder."""
    for path in inputs:
        if out.resolve().is_relative_to(path.resolve()):
            raise StoreError(f"{out} is, or is in, {path}, which is read by this command; give another --out.")


def file_digest(path: Path) -> str:
    """Return the content's hash."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


_HASH = "hash of this file"


def write_json(path: Path, table: Mapping[str, Any]) -> None:
    """Write a table with its hash."""
    sealed = {**table, _HASH: table_digest(json.loads(json.dumps(table)))}  # of the table as it is read again
    atomic_write(path, json.dumps(sealed, indent=1, ensure_ascii=False) + "\n")


def read_json(path: Path, remedy: Path | None = None) -> dict[str, Any] | None:
    """Return a table from `write_json`, or None.

    Args:
        remedy: the file that the error advises to delete.

    Raises:
        StoreError: it is damaged.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise damaged(path, str(error), remedy) from error
    if not isinstance(content, dict):
        raise damaged(path, "not a JSON object", remedy)
    digest = content.pop(_HASH, None)
    if digest is not None and digest != table_digest(content):
        raise damaged(path, "it is not what was written: the hash differs", remedy)
    return content


def table_digest(table: Mapping[str, Any]) -> str:
    """Return a table's hash, whatever its order."""
    return _digest(json.dumps(table, sort_keys=True).encode())


def damaged(path: Path, why: str, remedy: Path | None = None) -> StoreError:
    """Return a damaged file's error."""
    return StoreError(f"{path} is damaged ({why}); delete {remedy or path} and run the recipe again.")


def _count_reasons(dropped: pl.DataFrame | None) -> dict[str, int]:
    return {} if dropped is None else dict(dropped.group_by("reason").len().sort("reason").iter_rows())


def add_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return sums of counts by name."""
    total = Counter[str]()
    for count in counts:
        total.update(count)
    return dict(sorted(total.items()))
