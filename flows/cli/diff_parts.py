"""The tables of two sets that are compared, parted by the hash of a problem's id, so that one part is read at a time.

Rows are read a file at a time, their contents hashed, and laid down in temporary files by part. A problem is in the
same part of both sets. Each row has its place in its set, by which what is found is put in order again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from curation.publish import set_diff
from curation.publish.set_diff import PublishedTables
from curation.records import SourceError
from curation.storage.sorted_parts import in_slices
from flows.publish import versions
from flows.publish.curated_set import published_folder
from flows.stages.base import JUDGING_TABLE, TESTS_TABLE

_BESIDE = {TESTS_TABLE: ["index", "input", "output"], JUDGING_TABLE: None}
"""What belongs to the problems of a set of programs, and by which columns two differ; all, where none are named."""

_DROPPED = {"id": pl.String(), "reason": pl.String()}

_BEHIND = 1 << 40
"""Places of dropped rows begin here, after those of all others."""


class SetParts:
    """One set, by part.

    Args:
        place: the folder of a run or a set, or a version of a run's set, as in ``runs/x@2``.

    Raises:
        SourceError: there is no set, or no such version.
    """

    def __init__(self, place: str) -> None:
        run, at, number = place.rpartition("@")
        self._version: pl.LazyFrame | None = None
        self.home = published_folder(Path(place))
        """The folder of all that is read."""
        self._files: dict[str, list[Path]] = {}
        self._further: dict[str, pl.DataFrame] = {}
        if at and number.isdigit() and not Path(place).exists():
            self._version = _version_rows(Path(run), int(number))
            self.home = Path(run) / versions.FOLDER
            self.rows = self._version.select(pl.len()).collect().item()
            return
        folder = self.home
        self._files = {name: sorted((folder / name).glob("*.parquet")) for name in ("data", "dropped")}
        if not self._files["data"]:
            raise SourceError(
                f"{folder}: no data/*.parquet; give the folder of a run or of a curated set, or RUN@VERSION."
            )
        self.rows = sum(_read(file, ["id"]).height for files in self._files.values() for file in files)
        self._further = {
            name: _digests(folder / name, columns) for name, columns in _BESIDE.items() if (folder / name).is_dir()
        }

    def lay_down(self, folder: Path, parts: int) -> None:
        """Write the rows into a folder, by part."""
        self._folder, self._parts = folder, parts
        folder.mkdir()
        self._schemas: dict[str, pl.Schema] = {}
        heights: Counter[str] = Counter()
        for number, (table, frame) in enumerate(self._frames()):
            first = heights[table] + (_BEHIND if table == "dropped" else 0)
            placed = frame.with_columns(at=first + pl.int_range(pl.len(), dtype=pl.Int64))
            self._schemas.setdefault(table, placed.schema)
            heights[table] += frame.height
            keyed = placed.with_columns(part=pl.col("id").hash(0) % parts)
            for (part,), rows in keyed.partition_by("part", as_dict=True, include_key=False).items():
                rows.write_ipc(folder / f"{table}-{part}-{number:06}.arrow")
        self.size = heights["data"]

    @property
    def has_contents(self) -> bool:
        """Return whether the set's texts are there; of a version only decisions are kept."""
        return "statement" in self._schemas["data"]

    def read(self, part: int) -> PublishedTables:
        """Return the rows of a part."""
        inside = pl.col("problem").hash(0) % self._parts == part
        further = {name: frame.filter(inside) for name, frame in self._further.items()}
        return PublishedTables(self._table("data", part), self._table("dropped", part), further)

    def _table(self, name: str, part: int) -> pl.DataFrame:
        files = sorted(self._folder.glob(f"{name}-{part}-*.arrow"))
        schema = self._schemas.get(name, {**_DROPPED, "at": pl.Int64()})
        return pl.concat([pl.DataFrame(schema=schema), *(pl.read_ipc(file) for file in files)])

    def _frames(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Yield the table of some rows, and these."""
        for file in self._files.get("data", []):
            yield "data", _contents_hashed(_read(file))
        for file in self._files.get("dropped", []):
            yield "dropped", _read(file, list(_DROPPED))
        measures = ["policy", "pass_rate", "judged"]
        for rows in in_slices(self._version) if self._version is not None else ():
            yield "data", rows.filter("published").select("id", "source", "row", *measures)
            yield "dropped", versions.as_published(rows).filter(~pl.col("keep")).select("id", "reason", *measures)


def _version_rows(folder: Path, number: int) -> pl.LazyFrame:
    """Return what a run keeps of a version of its set: decisions, no contents."""
    known = [version.number for version in versions.stored_versions(folder)]
    if number not in known:
        there = f"versions there: {', '.join(map(str, known))}" if known else "no version is kept there"
        raise SourceError(f"{folder}@{number}: no such version; {there}.")
    rows = versions.scan_decisions(folder, number)
    return rows.with_columns(id="problem", source=pl.lit(None, pl.String), row=pl.lit(None, pl.Int64))


def _read(file: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Return the rows of a file of a set."""
    try:
        return pl.read_parquet(file, glob=False, columns=None if columns is None else list(columns))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SourceError(f"{file.parent}: no table of a curated set ({error}); publish the set again.") from error


def _contents_hashed(frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows of a set with hashes in the place of contents, which are only compared."""
    frame = frame.drop(set_diff.PASSED_OVER, strict=False)
    hashed = {name: pl.struct(name).hash(0) for name in frame.columns if name not in set_diff.READ}
    return frame.with_columns(
        pl.when(pl.col(name).is_not_null()).then(told).alias(name) for name, told in hashed.items()
    )


def _digests(folder: Path, columns: list[str] | None) -> pl.DataFrame:
    """Return per problem a digest of its rows, whatever their order."""
    row = pl.struct(columns or pl.exclude("problem")).hash(0)
    hashed = pl.concat([_read(file).select("problem", digest=row) for file in sorted(folder.glob("*.parquet"))])
    return hashed.group_by("problem").agg(pl.col("digest").sort().implode().hash(0))
