"""`goldilocks diff`: compares two sets, or two versions of a set, by problem.

Problems are divided by hash of id, so that one part at a time is in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from rich.console import Console

from curation.policies.excerpt import excerpt
from curation.publish import set_diff
from curation.publish.set_diff import PublishedTables
from curation.publish.versions import VersionChange
from curation.records import SourceError
from curation.storage.scratch import ScratchFolder
from curation.storage.sorted_parts import in_slices
from curation.storage.stages import atomic_write, require_outside, write_parquet
from flows.cli.as_json import print_json
from flows.publish import versions
from flows.publish.curated_set import published_folder
from flows.publish.versions import Version, refreshed_run, stored_versions
from flows.run.lookup import rows_of
from flows.run.run_folder import Run, open_run
from flows.run.terminal import SafeConsole
from flows.stages.base import JUDGING_TABLE, TESTS_TABLE
from flows.stages.questions import final_verdicts

PART_ROWS = 200_000
"""Rows of both sets compared at once."""

_BESIDE = {TESTS_TABLE: ["index", "input", "output"], JUDGING_TABLE: None}
"""Tables of programs and their compared columns; None: all."""

_DROPPED = {"id": pl.String(), "reason": pl.String()}

_BEHIND = 1 << 40
"""First place of dropped rows."""

SHOWN = 3
"""Changed verdicts that are shown per problem."""

_COMPARED = ("outcome", "answer", "answer_class")

UNMOVED = (VersionChange.KEPT, VersionChange.LEFT_OUT)


@dataclass(frozen=True, slots=True)
class SetDiff:
    """The comparison of two sets, with each class's first problems.

    ``has_contents`` is false for versions, which have no texts. ``differing`` counts problems by changed content,
    ``moves`` are changes of pass rates, ``table`` all `curation.publish.set_diff.CHANGES` rows, if wanted.
    """

    old: str
    new: str
    sizes: tuple[int, int]
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
    sides, whole = (SetParts(old), SetParts(new)), out is not None
    for side in sides:
        if out is not None:
            require_outside(out, side.home)
    parts = max(1, -(-sum(side.rows for side in sides) // PART_ROWS))
    scratch = ScratchFolder("diff")
    try:
        for name, side in zip(("old", "new"), sides, strict=True):
            side.lay_down(Path(scratch.path) / name, parts)
        found = _compare(*sides, parts, Path(scratch.path))
        counts: Counter[str] = Counter()
        differing: Counter[str] = Counter()
        moves, shown, rows = [], [], []
        for part in found:
            counts.update(set_diff.count_changes(part))
            differing.update(set_diff.count_differing(part))
            moves.append(part.select("at", move=set_diff.rate_move()).drop_nulls("move"))
            shown.append(part.group_by("change", maintain_order=True).head(set_diff.EXAMPLES).select(part.columns))
            if whole:
                rows.append(part)
        order = ("gone", "at")
        return SetDiff(
            old,
            new,
            (sides[0].size, sides[1].size),
            all(side.has_contents for side in sides),
            dict(counts),
            dict(sorted(differing.items(), key=lambda item: (-item[1], item[0]))),
            pl.concat(moves).sort("at")["move"],
            pl.concat(shown).sort(order),
            pl.concat(rows).sort(order).select(set_diff.CHANGES.names()) if whole else None,
        )
    finally:
        scratch.remove()


def _compare(old: SetParts, new: SetParts, parts: int, folder: Path) -> Iterator[pl.DataFrame]:
    """Yield each part's changes, after reading all parts to find reworded rows."""
    came: list[pl.DataFrame] = []
    left: list[pl.DataFrame] = []
    for part in range(parts):
        was, now = old.read(part), new.read(part)
        table = set_diff.part_changes(was, now)
        for found, tables, change in ((came, now, VersionChange.ADDED), (left, was, VersionChange.REMOVED)):
            rows = set_diff.moved_rows(tables, table, change)
            found += [rows] if rows is not None else []
        table.write_ipc(folder / f"changes-{part}.arrow")
    pairs = set_diff.reworded_pairs(pl.concat(came) if came else None, pl.concat(left) if left else None)
    for part in range(parts):
        yield set_diff.with_reworded(pl.read_ipc(folder / f"changes-{part}.arrow"), pairs)


def print_diff(diff: SetDiff, out: Path | None, *, as_json: bool) -> None:
    """Print a comparison; write all rows to ``out`` (.parquet or .jsonl)."""
    if out is not None and diff.table is not None:
        _write(diff.table, out)
    measured, shift = set_diff.rate_shift(diff.moves)
    if as_json:
        sizes = dict(zip(("old", "new"), diff.sizes, strict=True))
        rates = {"problems": measured, "mean_pass_rate_shift": shift}
        print_json({"problems": sizes, "changes": diff.counts, "differs": diff.differing, "measured_in_both": rates})
        return
    console = SafeConsole()
    for side, place, size in zip(("old", "new"), (diff.old, diff.new), diff.sizes, strict=True):
        console.print(f"{side}  {place}: {size:,} problems")
    contents = f": {_contents_text(diff.differing)}" if diff.has_contents else ""
    console.print(f"in both {diff.counts[VersionChange.KEPT] + diff.counts[set_diff.REWORDED]:,}{contents}")
    if shift is not None:
        console.print(f"mean pass rate of {measured:,} problems that both measured: {shift:+.3f}")
    verdicts = VerdictChanges(diff.old, diff.new)
    if verdicts.title is not None:
        console.print(verdicts.title)
    for name, count in diff.counts.items():
        if count and name not in UNMOVED:
            console.print(f"{name.replace('_', ' ')} {count:,}")
            examples = diff.first.filter(pl.col("change") == name).head(set_diff.EXAMPLES)
            _print_examples(console, examples, count, verdicts)
    if out is not None:
        console.print(f"every problem: {out}")


def _contents_text(differing: Mapping[str, int]) -> str:
    if not differing:
        return "the same contents"
    return "contents differ in " + ", ".join(f"{name} ({count:,})" for name, count in differing.items())


def _print_examples(console: Console, rows: pl.DataFrame, count: int, verdicts: VerdictChanges) -> None:
    for row in rows.iter_rows(named=True):
        sides = [
            "not there" if row["change"] == absent else _side(row[f"{side}_pass_rate"], row[f"{side}_reason"])
            for side, absent in (("old", VersionChange.ADDED), ("new", VersionChange.REMOVED))
        ]
        before = f"was {row['old_problem']}" if row["old_problem"] else " → ".join(sides)
        console.print(f"  {row['problem']}  {before}")
        for line in verdicts.lines(row["problem"]):
            console.print(f"    {line}", soft_wrap=True, markup=False)
    if count > rows.height:
        console.print(f"  and {count - rows.height:,} more")


def _side(rate: float | None, reason: str | None) -> str:
    return reason or (f"{rate:.2f}" if rate is not None else "kept")


def _write(table: pl.DataFrame, out: Path) -> None:
    if out.suffix == ".parquet":
        write_parquet(out, table)
    elif out.suffix == ".jsonl":
        atomic_write(out, table.write_ndjson())
    else:
        raise SourceError(f"--out {out}: the name must end in .parquet or .jsonl.")


class SetParts:
    """One set, by part.

    Args:
        place: folder of a run or set, or a version such as ``runs/x@2``.

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
        """Return whether rows have texts."""
        return "statement" in self._schemas["data"]

    def read(self, part: int) -> PublishedTables:
        """Return a part's rows."""
        inside = pl.col("problem").hash(0) % self._parts == part
        further = {name: frame.filter(inside) for name, frame in self._further.items()}
        return PublishedTables(self._table("data", part), self._table("dropped", part), further)

    def _table(self, name: str, part: int) -> pl.DataFrame:
        files = sorted(self._folder.glob(f"{name}-{part}-*.arrow"))
        schema = self._schemas.get(name, {**_DROPPED, "at": pl.Int64()})
        return pl.concat([pl.DataFrame(schema=schema), *(pl.read_ipc(file) for file in files)])

    def _frames(self) -> Iterator[tuple[str, pl.DataFrame]]:
        for file in self._files.get("data", []):
            yield "data", _contents_hashed(_read(file))
        for file in self._files.get("dropped", []):
            yield "dropped", _read(file, list(_DROPPED))
        measures = ["policy", "pass_rate", "judged"]
        for rows in in_slices(self._version) if self._version is not None else ():
            yield "data", rows.filter("published").select("id", "source", "row", *measures)
            yield "dropped", versions.as_published(rows).filter(~pl.col("keep")).select("id", "reason", *measures)


def _version_rows(folder: Path, number: int) -> pl.LazyFrame:
    known = [version.number for version in versions.stored_versions(folder)]
    if number not in known:
        there = f"versions there: {', '.join(map(str, known))}" if known else "no version is kept there"
        raise SourceError(f"{folder}@{number}: no such version; {there}.")
    rows = versions.scan_decisions(folder, number)
    return rows.with_columns(id="problem", source=pl.lit(None, pl.String), row=pl.lit(None, pl.Int64))


def _read(file: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    try:
        return pl.read_parquet(file, glob=False, columns=None if columns is None else list(columns))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SourceError(f"{file.parent}: no table of a curated set ({error}); publish the set again.") from error


def _contents_hashed(frame: pl.DataFrame) -> pl.DataFrame:
    frame = frame.drop(set_diff.PASSED_OVER, strict=False)
    hashed = {name: pl.struct(name).hash(0) for name in frame.columns if name not in set_diff.READ}
    return frame.with_columns(
        pl.when(pl.col(name).is_not_null()).then(told).alias(name) for name, told in hashed.items()
    )


def _digests(folder: Path, columns: list[str] | None) -> pl.DataFrame:
    """Return an order-free digest of each problem's rows."""
    row = pl.struct(columns or pl.exclude("problem")).hash(0)
    hashed = pl.concat([_read(file).select("problem", digest=row) for file in sorted(folder.glob("*.parquet"))])
    return hashed.group_by("problem").agg(pl.col("digest").sort().implode().hash(0))


class VerdictChanges:
    """The verdicts that differ between two versions of a run, if two verifiers judged.

    Args:
        old, new: such as ``runs/x@1`` and ``runs/x@2``.
    """

    def __init__(self, old: str, new: str) -> None:
        self._sides: tuple[tuple[Run, Version], ...] = ()
        sides = [_version(place) for place in (old, new)]
        found = tuple(side for side in sides if side is not None)
        if len(found) == 2 and found[0][0] == found[1][0] and found[0][1].verifier != found[1][1].verifier:
            self._sides = tuple((_run_of(folder, version), version) for folder, version in found)

    @property
    def title(self) -> str | None:
        """Return which verifiers judged, or None."""
        if not self._sides:
            return None
        return "verifier " + " → ".join(version.verifier for _, version in self._sides)

    def lines(self, problem: str) -> Iterator[str]:
        """Yield a line per changed verdict on a problem."""
        if not self._sides:
            return
        for part in self._sides[0][0].parts:
            tables = [
                rows_of(final_verdicts(run, part).folder_in(run, version.verifier), "verdicts", problem, "problem")
                for run, version in self._sides
            ]
            if all(table.height for table in tables):
                yield from changed_verdicts(part, *tables)


def changed_verdicts(part: str, old: pl.DataFrame, new: pl.DataFrame) -> Iterator[str]:
    """Yield a line per changed verdict, changed outcomes first, up to `SHOWN`.

    Args:
        old, new: `VERDICT` rows of a difficulty stage.
    """
    both = old.join(new, on=["problem", "index"], maintain_order="right", suffix="_now")
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_now")) for name in _COMPARED)
    changed = both.filter(differs).sort(pl.col("outcome") == pl.col("outcome_now"), maintain_order=True)
    for row in changed.head(SHOWN).iter_rows(named=True):
        yield (
            f"{part}, attempt {row['index']}: {excerpt(row['answer_now'])} against {excerpt(row['reference_now'])} was "
            f"{row['outcome']} ({row['method']}), is {row['outcome_now']} ({row['method_now']})"
        )
    if changed.height > SHOWN:
        yield f"{part}: {changed.height - SHOWN:,} more verdicts"


def _version(place: str) -> tuple[Path, Version] | None:
    folder, at, number = place.rpartition("@")
    if not at or not number.isdigit() or Path(place).exists():
        return None
    path = Path(folder).absolute()
    return next(((path, version) for version in stored_versions(path) if version.number == int(number)), None)


def _run_of(folder: Path, version: Version) -> Run:
    run = open_run(folder)
    return refreshed_run(run, version) if version.origin == "refresh" else run
