"""The append-only store of attempts.

    FOLDER/<key digest>/key.json                policy@revision, prompt version, sampling parameters
    FOLDER/<key digest>/journal.jsonl           attempts not yet in a part
    FOLDER/<key digest>/part-<content>.parquet  attempts (`ATTEMPT`)
    FOLDER/<key digest>/refused.jsonl           refused attempts (`REFUSAL`)

Invariants: an attempt, by key, problem and index, is never changed or repeated; it is on disk when `add` or
`append` returns; opening the store drops duplicates that a kill left.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from curation.records import ATTEMPT, VERDICT, AttemptKey, Completion, RequestRefused, StoreError
from curation.storage.journal import Journal, Name
from curation.storage.stages import atomic_write, note_hash, require_hash, write_parquet

REFUSAL = pl.Schema(
    {
        "problem": pl.String(),
        "index": pl.Int32(),
        "kind": pl.String(),  # a status such as 400, too_long, content_filter, no_answer, unusable
        "reason": pl.String(),  # what was refused and where, in the server's words
    }
)
"""Requests that the server refused; a later run repeats them."""

_PART_OF_PROBLEM = pl.Schema({"problem": pl.UInt64(), "attempts": pl.UInt32(), "part": pl.UInt32()})
"""Hash of a problem's id, its attempts in a part, and the part's number."""

PART_BYTES = 64 * 1024 * 1024
"""Max journal bytes of a part, which `compact` holds in memory."""

SYNC_S = 1.0
"""Seconds until added attempts outlast a power cut; they outlast any kill."""

_REASON_LETTERS = 400


class KeyedStore:
    """Rows under one key, by problem and index.

    Args:
        about: for a new key.json.
        create: make a missing store, and write.
        same_in_all: further columns with one value.

    Raises:
        StoreError: the store is missing or damaged.
    """

    schema: ClassVar[pl.Schema]

    def __init__(
        self,
        folder: Path,
        key: AttemptKey,
        about: Mapping[str, Any] | None = None,
        *,
        create: bool = True,
        **same_in_all: str,
    ) -> None:
        self.key = key
        text = json.dumps(asdict(key), sort_keys=True)
        self.folder = folder / hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        about_file = self.folder / "key.json"
        if create:
            self.folder.mkdir(parents=True, exist_ok=True)
            for leftover in self.folder.glob(".aside-*"):
                leftover.unlink()
            if not about_file.exists():
                content = json.dumps({**asdict(key), **(about or {})}, indent=1, ensure_ascii=False)
                atomic_write(about_file, content + "\n")
        elif not about_file.exists():
            raise StoreError(f"{self.folder}: there are no attempts of {key.policy}; run the recipe again.")
        self._journal = Journal(self.folder / "journal.jsonl", writable=create)
        self._parts: list[str] = []  # the files' names, by number
        self._part_of_problem = self._index(sorted(self.folder.glob("part-*.parquet")))
        problems = pl.DataFrame({"problem": [problem for problem, _ in self._journal.spans]}, {"problem": pl.String})
        self._journal.drop(set(self._read_parts(problems.unique(), ["problem", "index"]).iter_rows()))
        self._synced = time.monotonic()
        self._same_in_all = {**asdict(key), **same_in_all}

    @property
    def height(self) -> int:
        """Return the number of attempts."""
        return int(self._part_of_problem["attempts"].sum()) + len(self._journal.spans)

    @property
    def journal_bytes(self) -> int:
        """Return the journal's size in bytes."""
        return self._journal.bytes

    def add_lines(self, lines: Iterable[tuple[Name, dict[str, Any]]]) -> None:
        """Add rows to the journal."""
        self._journal.add(lines)
        if time.monotonic() - self._synced > SYNC_S:
            self._journal.sync()
            self._synced = time.monotonic()

    def compact(self, groups: Iterable[Sequence[str]] | None = None) -> None:
        """Move the journal's attempts into parts: all, or those of groups of problems."""
        names_of: dict[str, list[Name]] = {}
        for name in self._journal.spans:
            names_of.setdefault(name[0], []).append(name)
        moved: set[Name] = set()
        for problems in [sorted(names_of)] if groups is None else groups:
            names = [name for problem in problems for name in sorted(names_of.pop(problem, ()))]
            for batch in self._batches(names):
                self.append(self._frame(batch))
            moved.update(names)
        self._journal.drop(moved)

    def close(self) -> None:
        """Flush and close the journal."""
        self._journal.close()

    def append(self, attempts: pl.DataFrame) -> None:
        """Write attempts as a part.

        Raises:
            StoreError: an attempt exists.
        """
        if attempts.is_empty():
            return
        new = attempts.select("problem", "index")
        stored = self._read_parts(new.select("problem").unique(), ["problem", "index"])
        duplicates = pl.concat([stored, new]).filter(pl.struct("problem", "index").is_duplicated())
        if not duplicates.is_empty():
            raise StoreError(f"attempt {duplicates.row(0)} of {self.key.policy} would be twice in {self.folder}.")
        aside = self.folder / ".aside-part"
        digest = str(write_parquet(aside, attempts)["hash"])[:16]
        path = self.folder / f"part-{digest}.parquet"
        aside.rename(path)
        note_hash(path, digest)
        self._part_of_problem = pl.concat([self._part_of_problem, self._index([path])])

    def read(self, problems: Sequence[str], columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return these problems' attempts, sorted.

        Args:
            columns: must include problem and index.
        """
        columns = columns or self.schema.names()
        problem_frame = pl.DataFrame({"problem": problems}, schema={"problem": pl.String})
        attempts = self._read_parts(problem_frame, columns)
        requested = set(problems)
        names = [name for name in self._journal.spans if name[0] in requested]
        return pl.concat([attempts, self._frame(names).select(columns)]).sort("problem", "index")

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """Yield all attempts in tables.

        Args:
            columns: must include problem and index.
        """
        columns = columns or self.schema.names()
        journal = self._journal.snapshot()  # first: lines that move meanwhile are in both, and count once
        for path in sorted(self.folder.glob("part-*.parquet")):
            frame = self._part(path.name, columns)
            for name in frame.select("problem", "index").iter_rows():
                journal.pop(name, None)
            yield frame
        if journal:
            names = sorted(journal)
            yield self._as_frame(names, [journal[name] for name in names]).select(columns)

    def missing_indices(self, problems: Sequence[str], attempts: int) -> dict[str, list[int]]:
        """Return each problem's missing indices."""
        stored = set(self.read(problems, ["problem", "index"]).iter_rows())
        missing = {p: [i for i in range(attempts) if (p, i) not in stored] for p in problems}
        return {problem: indices for problem, indices in missing.items() if indices}

    def _batches(self, names: Sequence[Name]) -> Iterator[list[Name]]:
        batch, size = list[Name](), 0
        for name in names:
            _, line_size = self._journal.spans[name]
            if batch and size + line_size > PART_BYTES:
                yield batch
                batch, size = [], 0
            batch.append(name)
            size += line_size
        if batch:
            yield batch

    def _frame(self, names: Sequence[Name]) -> pl.DataFrame:
        return self._as_frame(names, list(self._journal.read(names)))

    def _as_frame(self, names: Sequence[Name], lines: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
        columns: dict[str, Any] = {name: [line.get(name) for line in lines] for name in self.schema}
        columns |= {"problem": [problem for problem, _ in names], "index": [index for _, index in names]}
        columns |= {name: [value] * len(lines) for name, value in self._same_in_all.items()}
        return pl.DataFrame(columns, schema=self.schema)

    def _read_parts(self, problems: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
        hashes = problems.select(pl.col("problem").hash())
        numbers = self._part_of_problem.join(hashes, on="problem", how="semi")["part"].unique().sort()
        parts = (self._part(self._parts[number], columns) for number in numbers)
        frames = [part.join(problems, on="problem", how="semi") for part in parts]
        return pl.concat([pl.DataFrame(schema={name: self.schema[name] for name in columns}), *frames])

    def _index(self, parts: list[Path]) -> pl.DataFrame:
        frames = [_PART_OF_PROBLEM.to_frame()]
        for path in parts:
            counts = self._scan(path, ["problem"]).group_by(pl.col("problem").hash()).len("attempts")
            frames.append(counts.with_columns(part=len(self._parts)).cast(_PART_OF_PROBLEM))
            self._parts.append(path.name)
        return pl.concat(frames)

    def _part(self, name: str, columns: Sequence[str]) -> pl.DataFrame:
        path = self.folder / name
        require_hash(path, path.stem.removeprefix("part-"))
        return self._scan(path, columns)

    def _scan(self, path: Path, columns: Sequence[str]) -> pl.DataFrame:
        try:
            scan = pl.scan_parquet(path, schema=self.schema, missing_columns="insert", glob=False)
            return scan.select(columns).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            message = ascii(str(error))[1:120]  # polars may quote the file's bytes
            raise StoreError(f"{path} is damaged ({message}…); remove it and its attempts are made again.") from error


class AttemptStore(KeyedStore):
    """Attempts under one key."""

    schema = ATTEMPT

    def add(self, completions: Iterable[tuple[str, int, Completion]]) -> None:
        """Add finished attempts to the journal."""
        self.add_lines(((problem, index), _journal_line(completion)) for problem, index, completion in completions)

    def add_refusals(self, refusals: Iterable[tuple[str, int, RequestRefused]]) -> None:
        """Record refused attempts."""
        rows = (
            (problem, index, refusal.kind, refusal.reason[:_REASON_LETTERS]) for problem, index, refusal in refusals
        )
        with (self.folder / "refused.jsonl").open("a") as out:
            out.write("".join(json.dumps(row) + "\n" for row in rows))


class VerdictStore(KeyedStore):
    """One verifier's verdicts; a null ``outcome``: not asked."""

    schema = VERDICT


def _journal_line(completion: Completion) -> dict[str, Any]:
    line = {
        "text": without_surrogates(completion.text),
        "answer": without_surrogates(completion.answer),
        "finish": completion.finish,
        "tokens": completion.tokens,
        "label": completion.label,
        "token_ids": completion.token_ids,
        "logprobs": completion.logprobs,
        **(asdict(completion.origin) if completion.origin is not None else {}),
    }
    return {name: value for name, value in line.items() if value is not None}


def without_surrogates(text: str | None) -> str | None:
    """Return text without surrogate halves."""
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode()
