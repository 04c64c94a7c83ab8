"""`goldilocks diff`: two published sets, or two versions of a run's set, compared problem by problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from rich.console import Console

from curation.publish import set_diff
from curation.publish.set_diff import PublishedTables
from curation.publish.versions import VersionChange
from curation.records import SourceError
from curation.storage.stages import atomic_write, write_parquet
from flows.cli.as_json import print_json
from flows.publish import versions
from flows.publish.curated_set import published_folder
from flows.stages.base import JUDGING_TABLE, TESTS_TABLE

EXAMPLES = 3
"""Problems of each class that are printed."""

UNMOVED = (VersionChange.KEPT, VersionChange.LEFT_OUT)

_BESIDE = {TESTS_TABLE: ["index", "input", "output"], JUDGING_TABLE: None}
"""What belongs to the problems of a set of programs, and by which columns two differ; all, where none are named."""


@dataclass(frozen=True, slots=True)
class SetDiff:
    """Two sets compared: how many problems each has, and `curation.publish.set_diff.CHANGES` rows.

    ``has_contents`` is false where one is a version, of which only decisions are kept.
    """

    old: str
    new: str
    sizes: tuple[int, int]
    table: pl.DataFrame
    has_contents: bool


def diff_folders(old: str, new: str) -> SetDiff:
    """Compare two sets; each is the folder of a run or a set, or a version of a run's set, as in ``runs/x@2``.

    Raises:
        SourceError: there is no set, or no such version.
    """
    tables = [_tables(place) for place in (old, new)]
    changes = set_diff.diff_sets(*tables)
    sizes = (tables[0].data.height, tables[1].data.height)
    return SetDiff(old, new, sizes, changes, all("statement" in one.data.columns for one in tables))


def print_diff(diff: SetDiff, out: Path | None, *, as_json: bool) -> None:
    """Print a comparison; ``out`` takes every problem's row, as .parquet or .jsonl."""
    if out is not None:
        _write(diff.table, out)
    counts, differing = set_diff.count_changes(diff.table), set_diff.count_differing(diff.table)
    measured, shift = set_diff.rate_shift(diff.table)
    if as_json:
        sizes = dict(zip(("old", "new"), diff.sizes, strict=True))
        rates = {"problems": measured, "mean_pass_rate_shift": shift}
        print_json({"problems": sizes, "changes": counts, "differs": differing, "measured_in_both": rates})
        return
    console = Console(highlight=False, markup=False, soft_wrap=True)
    for side, place, size in zip(("old", "new"), (diff.old, diff.new), diff.sizes, strict=True):
        console.print(f"{side}  {place}: {size:,} problems")
    contents = f": {_contents_text(differing)}" if diff.has_contents else ""
    console.print(f"in both {counts[VersionChange.KEPT] + counts[set_diff.REWORDED]:,}{contents}")
    if shift is not None:
        console.print(f"mean pass rate of {measured:,} problems that both measured: {shift:+.3f}")
    for name, count in counts.items():
        if count and name not in UNMOVED:
            console.print(f"{name.replace('_', ' ')} {count:,}")
            _print_examples(console, diff.table.filter(pl.col("change") == name))
    if out is not None:
        console.print(f"every problem: {out}")


def _contents_text(differing: Mapping[str, int]) -> str:
    if not differing:
        return "the same contents"
    return "contents differ in " + ", ".join(f"{name} ({count:,})" for name, count in differing.items())


def _print_examples(console: Console, rows: pl.DataFrame) -> None:
    for row in rows.head(EXAMPLES).iter_rows(named=True):
        sides = [
            "not there" if row["change"] == absent else _side(row[f"{side}_pass_rate"], row[f"{side}_reason"])
            for side, absent in (("old", VersionChange.ADDED), ("new", VersionChange.REMOVED))
        ]
        before = f"was {row['old_problem']}" if row["old_problem"] else " → ".join(sides)
        console.print(f"  {row['problem']}  {before}")
    if rows.height > EXAMPLES:
        console.print(f"  and {rows.height - EXAMPLES:,} more")


def _side(rate: float | None, reason: str | None) -> str:
    """Return what a set says of a problem."""
    return reason or (f"{rate:.2f}" if rate is not None else "kept")


def _write(table: pl.DataFrame, out: Path) -> None:
    if out.suffix == ".parquet":
        write_parquet(out, table)
    elif out.suffix == ".jsonl":
        atomic_write(out, table.write_ndjson())
    else:
        raise SourceError(f"--out {out}: the name must end in .parquet or .jsonl.")


def _tables(place: str) -> PublishedTables:
    """Read a set's tables."""
    run, at, number = place.rpartition("@")
    if at and number.isdigit() and not Path(place).exists():
        return _version_tables(Path(run), int(number))
    folder = published_folder(Path(place))
    files = sorted((folder / "data").glob("*.parquet"))
    if not files:
        raise SourceError(f"{folder}: no data/*.parquet; give the folder of a run or of a curated set, or RUN@VERSION.")
    left = sorted((folder / "dropped").glob("*.parquet"))
    nobody = pl.DataFrame(schema={"id": pl.String(), "reason": pl.String()})
    return PublishedTables(
        _read(files, _contents_hashed),
        _read(left, lambda frame: frame.select("id", "reason")) if left else nobody,
        {name: _digests(folder / name, columns) for name, columns in _BESIDE.items() if (folder / name).is_dir()},
    )


def _version_tables(folder: Path, number: int) -> PublishedTables:
    """Return what a run keeps of a version of its set: decisions, no contents."""
    known = [version.number for version in versions.stored_versions(folder)]
    if number not in known:
        there = f"versions there: {', '.join(map(str, known))}" if known else "no version is kept there"
        raise SourceError(f"{folder}@{number}: no such version; {there}.")
    decisions = versions.decisions_of(folder, number).with_columns(id="problem")
    rows = decisions.with_columns(source=pl.lit(None, pl.String), row=pl.lit(None, pl.Int64))
    kept = rows.filter("published").select("id", "source", "row", "policy", "pass_rate", "judged")
    left = versions.as_published(rows).filter(~pl.col("keep"))
    return PublishedTables(kept, left.select("id", "reason", "policy", "pass_rate", "judged"))


def _read(files: list[Path], wanted: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame) -> pl.DataFrame:
    """Return what is ``wanted`` of the rows of some files, of which one is in memory at a time."""
    try:
        return pl.concat([wanted(pl.read_parquet(file, glob=False)) for file in files])
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SourceError(f"{files[0].parent}: no table of a curated set ({error}); publish the set again.") from error


def _contents_hashed(frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows of a set with hashes in the place of contents, which are only compared."""
    hashed = {name: pl.struct(name).hash(0) for name in frame.columns if name not in set_diff.READ}
    return frame.with_columns(
        pl.when(pl.col(name).is_not_null()).then(told).alias(name) for name, told in hashed.items()
    )


def _digests(folder: Path, columns: list[str] | None) -> pl.DataFrame:
    """Return per problem a digest of its rows, whatever their order."""
    frame = _read(sorted(folder.glob("*.parquet")))
    hashed = frame.select("problem", digest=pl.struct(columns or pl.exclude("problem")).hash(0))
    return hashed.group_by("problem").agg(pl.col("digest").sort().implode().hash(0))
