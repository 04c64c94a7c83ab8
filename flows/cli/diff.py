"""`goldilocks diff`: compares two sets, or two versions of a set, by problem. Contents are compared by hash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
from rich.console import Console

from curation.policies.excerpt import excerpt
from curation.publish import versions as set_versions
from curation.publish.versions import PublishedTables, VersionChange
from curation.records import DropReason, SourceError
from curation.storage.stages import require_outside, system_error, write_parquet
from flows.publish import versions
from flows.publish.curated_set import published_folder
from flows.publish.versions import Version, refreshed_run, stored_versions
from flows.run.run_folder import Run, open_run
from flows.run.stage import JUDGING_TABLE, TESTS_TABLE, rows_of
from flows.run.terminal import SafeConsole
from flows.stages.questions import final_verdicts

_FURTHER = {TESTS_TABLE: pl.col("index", "input", "output"), JUDGING_TABLE: pl.exclude("problem")}
"""Tables of programs, and their compared columns."""

EXAMPLES = 3
"""Problems of each class that are shown, and changed verdicts of each problem."""

JudgedVersion = tuple[Run, Version]


def show_diff(old: str, new: str, out: Path | None) -> None:
    """Print a comparison of two sets: folders of a run or set, or versions such as ``runs/x@2``.

    Args:
        out: file for a row per problem, as Parquet.

    Raises:
        SourceError: there is no set, or no such version.
        StoreError: ``out`` is inside a set's folder.
    """
    if out is not None and out.suffix != ".parquet":
        raise SourceError(f"--out {out}: the name must end in .parquet.")
    (old_home, was, old_version), (new_home, now, new_version) = _open_set(old), _open_set(new)
    table = set_versions.compare(was, now)
    if out is not None:
        require_outside(out, old_home, new_home)
        write_parquet(out, table)
    counts, differing = set_versions.counts(table), set_versions.count_differing(table)
    measured, shift = set_versions.rate_shift(table)
    console = SafeConsole()
    console.print(f"old  {old}: {was.data.height:,} problems")
    console.print(f"new  {new}: {now.data.height:,} problems")
    names = ", ".join(f"{name} ({count:,})" for name, count in differing.items())
    contents = f": contents differ in {names}" if names else ": the same contents"
    has_contents = all("statement" in side.data.columns for side in (was, now))  # versions have none
    console.print(f"in both {counts[VersionChange.KEPT]:,}{contents if has_contents else ''}")
    if shift is not None:
        console.print(f"mean pass rate of {measured:,} problems that both measured: {shift:+.3f}")
    judged = list[JudgedVersion]()
    versions_of = [version for version in (old_version, new_version) if version is not None]
    if old_home == new_home and len({version.verifier for version in versions_of}) == 2:
        run = open_run(old_home.parent)
        judged = [
            (refreshed_run(run, version) if version.origin == "refresh" else run, version) for version in versions_of
        ]
        console.print("verifier " + " → ".join(version.verifier for version in versions_of))
    for name, count in counts.items():
        if count and name not in (VersionChange.KEPT, VersionChange.LEFT_OUT):
            console.print(f"{name.replace('_', ' ')} {count:,}")
            _print_examples(console, table.filter(pl.col("change") == name), judged)
    if out is not None:
        console.print(f"every problem: {out}")


def _print_examples(console: Console, rows: pl.DataFrame, judged: Sequence[JudgedVersion]) -> None:
    for row in rows.head(EXAMPLES).iter_rows(named=True):
        sides = []
        for side, missing_in in (("old", VersionChange.ADDED), ("new", VersionChange.REMOVED)):
            rate = row[f"{side}_pass_rate"]
            kept = f"{rate:.2f}" if rate is not None else "kept"
            sides.append("not there" if row["change"] == missing_in else row[f"{side}_reason"] or kept)
        console.print(f"  {row['problem']}  {' → '.join(sides)}")
        for line in _changed_verdicts(row["problem"], judged):
            console.print(f"    {line}", soft_wrap=True, markup=False)
    if rows.height > EXAMPLES:
        console.print(f"  and {rows.height - EXAMPLES:,} more")


def _open_set(place: str) -> tuple[Path, PublishedTables, Version | None]:
    """Return a set's folder, its tables with hashes in place of contents, and the version, which has no contents.

    Raises:
        SourceError: there is no set, or no such version.
    """
    name, at, number = place.rpartition("@")
    if at and number.isdigit() and not Path(place).exists():
        folder = Path(name).absolute()
        known = {version.number: version for version in stored_versions(folder)}
        if int(number) not in known:
            there = f"versions there: {', '.join(map(str, known))}" if known else "no version is kept there"
            raise SourceError(f"{place}: no such version; {there}.")
        measures = ("id", "policy", "pass_rate", "judged")
        rows = versions.scan_decisions(folder, int(number)).rename({"problem": "id"})
        decisions = rows.select("keep", "published", "reason", *measures).collect()
        over = pl.when("keep").then(pl.lit(DropReason.OVER_QUOTA.value)).otherwise("reason")
        others = decisions.filter(~pl.col("published")).with_columns(reason=over)
        kept = decisions.filter("published")
        tables = PublishedTables(kept.select(measures), others.select("reason", *measures))
        return folder / versions.FOLDER, tables, known[int(number)]
    home = published_folder(Path(place))
    data, dropped = (sorted((home / name).glob("*.parquet")) for name in ("data", "dropped"))
    if not data:
        raise SourceError(f"{home}: no data/*.parquet; give the folder of a run or of a curated set, or RUN@VERSION.")
    try:
        rows = pl.scan_parquet(data, glob=False).drop(set_versions.NO_CONTENT - {*set_versions.READ}, strict=False)
        contents = [name for name in rows.collect_schema().names() if name not in set_versions.READ]
        hashes = [pl.when(pl.col(name).is_not_null()).then(pl.struct(name).hash(0)).alias(name) for name in contents]
        none = pl.LazyFrame(schema={"id": pl.String, "reason": pl.String})
        left = pl.scan_parquet(dropped, glob=False).select("id", "reason") if dropped else none
        further = {name: _digests(home / name, row) for name, row in _FURTHER.items() if (home / name).is_dir()}
        hashed = rows.with_columns(hashes).collect(engine="streaming")
        return home, PublishedTables(hashed, left.collect(), further), None
    except (pl.exceptions.PolarsError, FileNotFoundError) as error:
        if (failed := system_error(error)) is not None:  # such as a full disk
            raise failed from error
        raise SourceError(f"{home}: no table of a set ({error}); publish the set again.") from error


def _digests(folder: Path, row: pl.Expr) -> pl.DataFrame:
    """Return an order-free digest of each problem's rows."""
    none = pl.LazyFrame(schema={"problem": pl.String, "digest": pl.UInt64})
    files = [pl.scan_parquet(file, glob=False) for file in sorted(folder.glob("*.parquet"))]
    hashed = pl.concat([none, *(file.select("problem", digest=pl.struct(row).hash(0)) for file in files)])
    digest = pl.col("digest").sort().implode().hash(0)
    return hashed.collect(engine="streaming").group_by("problem").agg(digest)


def _changed_verdicts(problem: str, judged: Sequence[JudgedVersion]) -> Iterator[str]:
    """Yield a line per verdict that differs, changed outcomes first, up to `EXAMPLES` of each difficulty stage."""
    for part in judged[0][0].parts if judged else ():
        old, new = (
            rows_of(final_verdicts(run, part).folder_in(run, version.verifier), "verdicts", problem, "problem")
            for run, version in judged
        )
        if not old.height or not new.height:
            continue
        both = old.join(new, on=["problem", "index"], maintain_order="right", suffix="_now")
        compared = ("outcome", "answer", "answer_class")
        differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_now")) for name in compared)
        changed = both.filter(differs).sort(pl.col("outcome") == pl.col("outcome_now"), maintain_order=True)
        for row in changed.head(EXAMPLES).iter_rows(named=True):
            yield (
                f"{part}, attempt {row['index']}: {excerpt(row['answer_now'])} against "
                f"{excerpt(row['reference_now'])} was {row['outcome']} ({row['method']}), is {row['outcome_now']} "
                f"({row['method_now']})"
            )
        if changed.height > EXAMPLES:
            yield f"{part}: {changed.height - EXAMPLES:,} more verdicts"
