"""`goldilocks diff`: two published sets, or two versions of a run's set, compared problem by problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from rich.console import Console

from curation.publish import set_diff
from curation.publish.versions import VersionChange
from curation.records import SourceError
from curation.storage.scratch import ScratchFolder
from curation.storage.stages import atomic_write, require_outside, write_parquet
from flows.cli.as_json import print_json
from flows.cli.diff_parts import SetParts
from flows.cli.diff_verdicts import VerdictChanges
from flows.run.terminal import SafeConsole

PART_ROWS = 200_000
"""Rows of both sets together that are compared at once."""

UNMOVED = (VersionChange.KEPT, VersionChange.LEFT_OUT)


@dataclass(frozen=True, slots=True)
class SetDiff:
    """Two sets compared: how many problems each has, how many each class, and the first of each class.

    ``has_contents`` is false where one is a version, of which only decisions are kept. ``differing`` counts the
    problems of which a content differs, ``moves`` are the pass rates' of those that both measured, ``table`` are the
    `curation.publish.set_diff.CHANGES` rows of all, where they are wanted.
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
    """Compare two sets; each is the folder of a run or a set, or a version of a run's set, as in ``runs/x@2``.

    Args:
        out: where every problem's row is to be written; they are then in memory together.

    Raises:
        SourceError: there is no set, or no such version.
        StoreError: the rows would be written among those that are read.
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
    """Yield the changes of each part in their order, with its cause (`curation.publish.set_diff.with_reworded`).

    A row that another id represents may be in any part, so all parts are gone through first.
    """
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
    """Print a comparison; ``out`` takes every problem's row, as .parquet or .jsonl."""
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
    """Return what a set holds on a problem."""
    return reason or (f"{rate:.2f}" if rate is not None else "kept")


def _write(table: pl.DataFrame, out: Path) -> None:
    if out.suffix == ".parquet":
        write_parquet(out, table)
    elif out.suffix == ".jsonl":
        atomic_write(out, table.write_ndjson())
    else:
        raise SourceError(f"--out {out}: the name must end in .parquet or .jsonl.")
