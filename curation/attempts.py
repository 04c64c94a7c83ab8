"""The append-only store of attempts, shared by every stage that samples or judges.

    FOLDER/<key digest>/key.json                policy@revision, prompt version, sampling parameters
    FOLDER/<key digest>/part-<content>.parquet  attempts in the `ATTEMPT` schema

Invariants:
  - an attempt is named by (problem, policy, prompt, sampling, index); it is written once and never changed;
  - a part is named by its content, so writing it again changes nothing;
  - an attempt that is in the store is never asked for again (`missing`).

Verdicts are kept apart, so that a better verifier judges old attempts again without a GPU.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from curation.records import ATTEMPT, AttemptKey, StoreError
from curation.store import file_digest, write_aside

_WHERE = pl.Schema({"problem": pl.String(), "attempts": pl.UInt32(), "part": pl.String()})


class AttemptStore:
    """Attempts under one key. Opening it reads which problem lies in which part, nothing more.

    Args:
        about: what stands in key.json beside the key when the store is made.
        create: whether a store that is not there is made; else it is a `StoreError`.
    """

    def __init__(
        self, folder: Path, key: AttemptKey, about: Mapping[str, Any] | None = None, *, create: bool = True
    ) -> None:
        self.key = key
        text = json.dumps(asdict(key), sort_keys=True)
        self.folder = folder / hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        if create:
            self._create(about or {})
        elif not (self.folder / "key.json").exists():
            raise StoreError(f"{self.folder}: the attempts of {key.policy} are not there; run the recipe again.")
        self._where = self._index(sorted(self.folder.glob("part-*.parquet")))

    def _create(self, about: Mapping[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for leftover in self.folder.glob(".aside-*"):
            leftover.unlink()
        if not (self.folder / "key.json").exists():
            content = json.dumps({**asdict(self.key), **about}, indent=1, ensure_ascii=False)
            write_aside(self.folder / "key.json", content + "\n")

    @property
    def height(self) -> int:
        """How many attempts the store holds."""
        return int(self._where["attempts"].sum())

    def append(self, attempts: pl.DataFrame) -> None:
        """Add finished attempts, on disk when this returns. Attempts that are there already are refused."""
        if attempts.is_empty():
            return
        if attempts.schema != ATTEMPT:
            raise StoreError(f"attempts have the columns {attempts.schema}, the store takes {ATTEMPT}.")
        own = (self.key.policy, self.key.prompt, self.key.sampling)
        keys = attempts.select("policy", "prompt", "sampling").unique().rows()
        if keys != [own]:
            raise StoreError(f"attempts of {keys} do not belong into the store of {own} in {self.folder}.")
        names = attempts.select("problem", "index")
        held = self.read(names["problem"].unique().to_list(), ["problem", "index"])
        double = pl.concat([held, names]).filter(pl.struct("problem", "index").is_duplicated())
        if not double.is_empty():
            raise StoreError(f"attempt {double.row(0)} of {self.key.policy} would stand twice in {self.folder}.")
        aside = self.folder / ".aside-part"
        attempts.rechunk().write_parquet(aside, compression="zstd", compression_level=3)
        path = self.folder / f"part-{file_digest(aside)[:16]}.parquet"
        with aside.open("rb") as handle:
            os.fsync(handle.fileno())
        aside.rename(path)
        self._where = pl.concat([self._where, self._index([path])])

    def read(self, problems: Sequence[str], columns: Sequence[str] = tuple(ATTEMPT)) -> pl.DataFrame:
        """All attempts at these problems, ordered by problem and index; ``columns`` must name these two."""
        wanted = pl.DataFrame({"problem": problems}, schema={"problem": pl.String})
        parts = self._where.join(wanted, on="problem", how="semi")["part"].unique().sort()
        found = [self._part(part, columns).join(wanted, on="problem", how="semi") for part in parts]
        if not found:
            return pl.DataFrame(schema={name: ATTEMPT[name] for name in columns})
        return pl.concat(found).sort("problem", "index")

    def missing(self, problems: Iterable[str], attempts: int) -> dict[str, list[int]]:
        """Which of the indices 0 … attempts-1 each problem still lacks; problems that lack none are left out."""
        problems = list(problems)
        held: dict[str, set[int]] = {}
        for problem, index in self.read(problems, ["problem", "index"]).iter_rows():
            held.setdefault(problem, set()).add(index)
        lacking = {p: [i for i in range(attempts) if i not in held.get(p, ())] for p in problems}
        return {problem: indices for problem, indices in lacking.items() if indices}

    def _index(self, parts: list[Path]) -> pl.DataFrame:
        """Which problems lie in which part."""
        found = [
            self._part(path.name, ["problem"])
            .group_by("problem", maintain_order=True)
            .agg(pl.len().cast(pl.UInt32).alias("attempts"))
            .with_columns(part=pl.lit(path.name))
            for path in parts
        ]
        return pl.concat([pl.DataFrame(schema=_WHERE), *found])

    def _part(self, name: str, columns: Sequence[str]) -> pl.DataFrame:
        path = self.folder / name
        try:
            return pl.read_parquet(path, columns=list(columns), glob=False)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise StoreError(f"{path} is damaged ({error}); remove it and its attempts are made again.") from error
