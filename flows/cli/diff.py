"""`goldilocks diff`: compares two sets, or two versions of a set, by problem.

Contents are compared by hash, and some problems at a time (`curation.storage.sorted_parts.in_order`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import polars as pl
from rich.console import Console

from curation.policies.excerpt import excerpt
from curation.publish import set_diff
from curation.publish.set_diff import PublishedTables
from curation.publish.versions import VersionChange
from curation.publish.versions import counts as count_changes
from curation.records import DropReason, SourceError
from curation.storage.scratch import ScratchFolder
from curation.storage.sorted_parts import in_order
from curation.storage.stages import atomic_write, require_outside, system_error, write_parquet
from flows.cli.as_json import print_json
from flows.publish import versions
from flows.publish.curated_set import published_folder
from flows.publish.versions import Version, refreshed_run, stored_versions
from flows.run.run_folder import Run, open_run
from flows.run.stage import JUDGING_TABLE, TESTS_TABLE, rows_of
from flows.run.terminal import SafeConsole
from flows.stages.questions import final_verdicts

_FURTHER = {TESTS_TABLE: ["index", "input", "output"], JUDGING_TABLE: None}
"""Tables of programs and their compared columns; None: all."""

_AFTER_DATA = 1 << 40
"""First place of dropped rows."""

SHOWN = 3
"""Changed verdicts that are shown per problem."""

JudgedVersion = tuple[Run, Version]


@dataclass(frozen=True, slots=True)
class SetDiff:
    """The comparison of two sets, with each class's first problems.

    ``has_contents`` is false for versions, which have no texts. ``differing`` counts problems by changed content,
    ``moves`` are changes of pass rates, ``table`` all `curation.publish.set_diff.CHANGES` rows, if wanted.
    """

    old: str
    new: str
    sizes: tuple[int, ...]
    has_contents: bool
    counts: Mapping[str, int]
    differing: Mapping[str, int]
    moves: pl.Series
    first: pl.DataFrame
    table: pl.DataFrame | None


def diff_folders(old: str, new: str, *, out: Path | None = None) -> SetDiff:
    """Compare two sets: folders of a run or set, or versions such as ``runs/x@2``.

    Args:
        out: file of all rows, which are then in memory.

    Raises:
        SourceError: there is no set, or no such version.
        StoreError: ``out`` is inside a set's folder.
    """
    sides, whole = (_open_set(old), _open_set(new)), out is not None
    for side in sides:
        if out is not None:
            require_outside(out, side.home)
    scratch = ScratchFolder("diff")
    try:
        folder = Path(scratch.path)
        tables = [table for number, side in enumerate(sides) for table in side.hashed(folder / str(number))]
        counts: Counter[str] = Counter()
        differing: Counter[str] = Counter()
        moves, shown, rows = [], [], []
        nothing = set_diff.CHANGES.to_frame().with_columns(gone=pl.lit(False), at=pl.lit(0, pl.Int64))
        for part in chain([nothing], _compare(tables, sides)):
            counts.update(count_changes(part))
            differing.update(set_diff.count_differing(part))
            moves.append(part.select("at", move=set_diff.rate_move()).drop_nulls("move"))
            shown.append(part.group_by("change", maintain_order=True).head(set_diff.EXAMPLES).select(part.columns))
            if whole:
                rows.append(part)
        order = ("gone", "at")
        first = pl.concat(shown).sort(order).group_by("change", maintain_order=True).head(set_diff.EXAMPLES)
        return SetDiff(
            old,
            new,
            tuple(int(table.select(pl.len()).collect().item()) for table in tables[::2]),
            all("statement" in side.data.collect_schema() for side in sides),
            dict(counts),
            dict(sorted(differing.items(), key=lambda item: (-item[1], item[0]))),
            pl.concat(moves).sort("at")["move"],
            first,
            pl.concat(rows).sort(order).select(set_diff.CHANGES.names()) if whole else None,
        )
    finally:
        scratch.remove()


def _compare(tables: Sequence[pl.LazyFrame], sides: Sequence[_Set]) -> Iterator[pl.DataFrame]:
    """Yield the changes of some problems at a time."""
    for old_data, old_dropped, new_data, new_dropped in in_order(*tables, by=("problem", "at")):
        tables_of = []
        for own, data, dropped in ((sides[0], old_data, old_dropped), (sides[1], new_data, new_dropped)):
            further = {name: table.join(data, on="problem", how="semi") for name, table in own.further.items()}
            tables_of.append(PublishedTables(data.drop("problem"), dropped, further))
        yield set_diff.part_changes(*tables_of)


def print_diff(diff: SetDiff, out: Path | None, *, as_json: bool) -> None:
    """Print a comparison; write all rows to ``out`` (.parquet or .jsonl)."""
    if out is not None and diff.table is not None:
        if out.suffix not in (".parquet", ".jsonl"):
            raise SourceError(f"--out {out}: the name must end in .parquet or .jsonl.")
        if out.suffix == ".parquet":
            write_parquet(out, diff.table)
        else:
            atomic_write(out, diff.table.write_ndjson())
    measured, shift = set_diff.rate_shift(diff.moves)
    if as_json:
        sizes = dict(zip(("old", "new"), diff.sizes, strict=True))
        rates = {"problems": measured, "mean_pass_rate_shift": shift}
        print_json({"problems": sizes, "changes": diff.counts, "differs": diff.differing, "measured_in_both": rates})
        return
    console = SafeConsole()
    for side, place, size in zip(("old", "new"), (diff.old, diff.new), diff.sizes, strict=True):
        console.print(f"{side}  {place}: {size:,} problems")
    differing = ", ".join(f"{name} ({count:,})" for name, count in diff.differing.items())
    contents = f"contents differ in {differing}" if differing else "the same contents"
    both = diff.counts[VersionChange.KEPT]
    console.print(f"in both {both:,}{f': {contents}' if diff.has_contents else ''}")
    if shift is not None:
        console.print(f"mean pass rate of {measured:,} problems that both measured: {shift:+.3f}")
    judged = _judged_versions(diff.old, diff.new)
    if judged:
        console.print("verifier " + " → ".join(version.verifier for _, version in judged))
    for name, count in diff.counts.items():
        if count and name not in (VersionChange.KEPT, VersionChange.LEFT_OUT):
            console.print(f"{name.replace('_', ' ')} {count:,}")
            _print_examples(console, diff.first.filter(pl.col("change") == name), count, judged)
    if out is not None:
        console.print(f"every problem: {out}")


def _print_examples(console: Console, rows: pl.DataFrame, count: int, judged: Sequence[JudgedVersion]) -> None:
    for row in rows.iter_rows(named=True):
        sides = []
        for side, absent in (("old", VersionChange.ADDED), ("new", VersionChange.REMOVED)):
            rate = row[f"{side}_pass_rate"]
            kept = f"{rate:.2f}" if rate is not None else "kept"
            sides.append("not there" if row["change"] == absent else row[f"{side}_reason"] or kept)
        console.print(f"  {row['problem']}  {' → '.join(sides)}")
        for part in judged[0][0].parts if judged else ():
            tables = [
                rows_of(
                    final_verdicts(run, part).folder_in(run, version.verifier), "verdicts", row["problem"], "problem"
                )
                for run, version in judged
            ]
            for line in _changed_verdicts(part, *tables) if all(table.height for table in tables) else ():
                console.print(f"    {line}", soft_wrap=True, markup=False)
    if count > rows.height:
        console.print(f"  and {count - rows.height:,} more")


@dataclass(frozen=True, slots=True)
class _Set:
    """A set's tables in its folder ``home``; ``further`` has digests of further contents by problem."""

    home: Path
    data: pl.LazyFrame
    dropped: pl.LazyFrame
    further: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    def hashed(self, folder: Path) -> tuple[pl.LazyFrame, pl.LazyFrame]:
        """Write the tables into a new folder, with places, and with hashes in place of contents."""
        folder.mkdir()
        with _naming_the_set(self.home):
            data = self.data.drop(set_diff.PASSED_OVER, strict=False)
            contents = [name for name in data.collect_schema().names() if name not in set_diff.READ]
            hashes = [
                pl.when(pl.col(name).is_not_null()).then(pl.struct(name).hash(0)).alias(name) for name in contents
            ]
            tables = {"data": data.with_columns(hashes), "dropped": self.dropped}
            for name, table in tables.items():
                place = pl.col("at").cast(pl.Int64) + (_AFTER_DATA if name == "dropped" else 0)
                placed = table.with_row_index("at").with_columns(place, problem="id")
                placed.sink_parquet(folder / f"{name}.parquet")
        return pl.scan_parquet(folder / "data.parquet"), pl.scan_parquet(folder / "dropped.parquet")


@contextmanager
def _naming_the_set(home: Path) -> Iterator[None]:
    """Raise errors of polars as a set's, but system errors, such as a full disk, as they are."""
    try:
        yield
    except (pl.exceptions.PolarsError, FileNotFoundError) as error:
        if (failed := system_error(error)) is not None:
            raise failed from error
        raise SourceError(f"{home}: no table of a set ({error}); publish the set again.") from error


def _open_set(place: str) -> _Set:
    """Return a set: of a run's or its own folder, or a version such as ``runs/x@2``.

    Raises:
        SourceError: there is no set, or no such version.
    """
    if (named := _named_version(place)) is not None:
        folder, number = named
        known = [version.number for version in stored_versions(folder)]
        if number not in known:
            there = f"versions there: {', '.join(map(str, known))}" if known else "no version is kept there"
            raise SourceError(f"{place}: no such version; {there}.")
        rows = versions.scan_decisions(folder, number).with_columns(id="problem")
        over = pl.when("keep").then(pl.lit(DropReason.OVER_QUOTA.value)).otherwise("reason")
        left = rows.filter(~pl.col("published")).with_columns(reason=over)
        measures = ["policy", "pass_rate", "judged"]
        kept = rows.filter("published").select("id", *measures)
        return _Set(folder / versions.FOLDER, kept, left.select("id", "reason", *measures))
    home = published_folder(Path(place))
    data, dropped = (sorted((home / name).glob("*.parquet")) for name in ("data", "dropped"))
    if not data:
        raise SourceError(f"{home}: no data/*.parquet; give the folder of a run or of a curated set, or RUN@VERSION.")
    further = {name: _digests(home / name, columns) for name, columns in _FURTHER.items() if (home / name).is_dir()}
    none = pl.LazyFrame(schema={"id": pl.String, "reason": pl.String})
    rows = pl.scan_parquet(dropped, glob=False).select("id", "reason") if dropped else none
    return _Set(home, pl.scan_parquet(data, glob=False), rows, further)


def _digests(folder: Path, columns: list[str] | None) -> pl.DataFrame:
    """Return an order-free digest of each problem's rows."""
    row = pl.struct(columns or pl.exclude("problem")).hash(0)
    none = pl.DataFrame(schema={"problem": pl.String, "digest": pl.UInt64})
    with _naming_the_set(folder.parent):
        files = [pl.scan_parquet(file, glob=False) for file in sorted(folder.glob("*.parquet"))]
        hashed = pl.concat([none, *(file.select("problem", digest=row).collect() for file in files)])
    return hashed.group_by("problem").agg(pl.col("digest").sort().implode().hash(0))


def _named_version(place: str) -> tuple[Path, int] | None:
    folder, at, number = place.rpartition("@")
    return (Path(folder), int(number)) if at and number.isdigit() and not Path(place).exists() else None


def _judged_versions(old: str, new: str) -> tuple[JudgedVersion, ...]:
    """Return two versions of one run if different verifiers judged them."""
    named = [one for one in map(_named_version, (old, new)) if one is not None]
    found = [(folder.absolute(), v) for folder, number in named for v in stored_versions(folder) if v.number == number]
    if len({folder for folder, _ in found}) != 1 or len({version.verifier for _, version in found}) != 2:
        return ()
    runs = [(open_run(folder), version) for folder, version in found]
    return tuple((refreshed_run(run, v) if v.origin == "refresh" else run, v) for run, v in runs)


def _changed_verdicts(part: str, old: pl.DataFrame, new: pl.DataFrame) -> Iterator[str]:
    """Yield a line per verdict of a difficulty stage that differs, changed outcomes first, up to `SHOWN`."""
    both = old.join(new, on=["problem", "index"], maintain_order="right", suffix="_now")
    compared = ("outcome", "answer", "answer_class")
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_now")) for name in compared)
    changed = both.filter(differs).sort(pl.col("outcome") == pl.col("outcome_now"), maintain_order=True)
    for row in changed.head(SHOWN).iter_rows(named=True):
        yield (
            f"{part}, attempt {row['index']}: {excerpt(row['answer_now'])} against {excerpt(row['reference_now'])} was "
            f"{row['outcome']} ({row['method']}), is {row['outcome_now']} ({row['method_now']})"
        )
    if changed.height > SHOWN:
        yield f"{part}: {changed.height - SHOWN:,} more verdicts"
