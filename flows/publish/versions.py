"""Number, keep and compare the versions of a run's curated set.

Changed decisions, pass rates or policies make a version, dated (UTC) by its first making. A refreshed version is valid
while the pipeline's decisions stay the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate, chain
from pathlib import Path
from typing import Literal

import polars as pl

from curation.publish import versions
from curation.records import DropReason, StoreError
from curation.storage.sorted_parts import digest_in_order, in_order, scan_table, write_scanned
from curation.storage.stages import (
    Shard,
    compact,
    damaged,
    file_digest,
    read_json,
    read_shard,
    read_table,
    require_hash,
    write_json,
)
from flows.run.run_folder import Run, open_run
from flows.run.stage import Results, StageResult, StageRun, shard_counts, split_rows
from flows.stages.attempts import today
from flows.stages.decisions import decisions_of as decisions_stage

FOLDER = "versions"
ABOUT, DECISIONS = "about.json", "decisions.parquet"
CHANGELOG = "CHANGELOG.md"

Origin = Literal["run", "refresh"]


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a run's set.

    ``digest`` is of its decisions, ``root`` of the pipeline's own, ``file`` of decisions.parquet; ``changes`` is its
    section of CHANGELOG.md.
    """

    number: int
    made_on: str
    origin: Origin
    policy: str
    verifier: str
    digest: str
    root: str
    counts: Mapping[str, int]
    cost: Mapping[str, int] = field(default_factory=dict)
    file: str = ""
    changes: str = ""


@dataclass(frozen=True, slots=True)
class RefreshedRun(Run):
    """A run with its last difficulty stage and export in a version's folder."""

    place: Path = Path()

    @property
    def version_folder(self) -> Path | None:
        """Return the version's folder."""
        return self.place


def stored_versions(folder: Path) -> list[Version]:
    """Return a run folder's versions, oldest first."""
    stored = []
    for path in sorted((folder / FOLDER).glob(f"[0-9]*/{ABOUT}")):
        try:
            stored.append(Version(**(read_json(path, remedy=path.parent) or {})))
        except TypeError as error:
            raise damaged(path, str(error), remedy=path.parent) from error
    return stored


def latest(folder: Path) -> Version | None:
    """Return the newest version, or None."""
    return next(reversed(stored_versions(folder)), None)


def version_folder(folder: Path, number: int) -> Path:
    """Return the folder of a version."""
    return folder / FOLDER / f"{number:04}"


def published_rows(folder: Path, number: int) -> int:
    """Return how many problems a version publishes."""
    return int(scan_decisions(folder, number).select(pl.col("published").sum()).collect().item())


def scan_decisions(folder: Path, number: int) -> pl.LazyFrame:
    """Scan a version's decisions as `curation.publish.versions.KEPT`; empty for version 0."""
    if number == 0:
        return versions.KEPT.to_frame().lazy()
    path = version_folder(folder, number) / DECISIONS
    about = next((version for version in stored_versions(folder) if version.number == number), None)
    require_hash(path, about.file or None if about is not None else None)
    try:
        table = pl.scan_parquet(path, glob=False)
        table.collect_schema()
    except (FileNotFoundError, pl.exceptions.PolarsError) as error:
        raise StoreError(f"{path} cannot be read ({error}); publish it again with `goldilocks run`.") from error
    return table


def decisions_on(table: pl.LazyFrame, problems: pl.Series, start: int) -> pl.DataFrame:
    """Return the decisions on these problems, in order.

    Args:
        start: where they are in the table if it has the problems' order.
    """
    own = table.slice(start, len(problems)).collect()
    if own["problem"].equals(problems):
        return own
    names = problems.alias("problem").to_frame()
    found = table.join(names.lazy(), on="problem", how="semi").collect()
    return names.join(found, on="problem", maintain_order="left").select(own.columns)


def gather_decisions(last: StageResult, exported: StageResult, measured: str) -> pl.LazyFrame:
    """Scan a set's decisions, with whether each problem is published.

    Args:
        measured: the attempts' day, if decisions lack it.
    """
    decisions = scan_table(last.folder, "decisions")
    names = decisions.collect_schema().names()
    if not names:
        return versions.KEPT.to_frame().lazy()
    if "measured_on" not in names:
        decisions = decisions.with_columns(measured_on=pl.lit(measured))
    dropped = read_table(exported.folder, "dropped", ["id"])
    over_quota = dropped["id"].implode() if dropped.width else pl.lit([], pl.List(pl.String))
    stays = pl.col("keep") & ~pl.col("problem").is_in(over_quota)
    return decisions.with_columns(published=stays).select(versions.KEPT.names())


def settle_version(
    run: Run,
    table: pl.LazyFrame,
    verifier: str,
    origin: Origin = "run",
    policy: str | None = None,
    root: str | None = None,
    cost: Mapping[str, int] | None = None,
) -> Version:
    """Return the newest version if it has these decisions, else store a new one.

    Args:
        policy, root, cost: of a refresh.
    """
    digest, before = digest_of(table), latest(run.folder)
    if before is not None and before.digest == digest:
        is_whole = (version_folder(run.folder, before.number) / DECISIONS).is_file()
        return before if is_whole else _store(run, before, table)
    number = before.number + 1 if before is not None else 1
    if policy is None:
        first = table.select("policy").head(1).collect()["policy"]
        policy = str(first[0]) if len(first) else "no policy"
    day = today()
    counts, shown = _shown_changes(scan_decisions(run.folder, number - 1), table)
    changes = versions.changelog(number, day, policy, counts, shown)
    if cost:
        changes += (
            f"\nJudged again: {cost['problems']:,} problems with {cost['attempts']:,} attempts and {cost['tokens']:,} "
            f"tokens; {cost['kept_rates']:,} problems kept their pass rates.\n"
        )
    about = (number, day, origin, policy, verifier, digest, root or digest, counts, cost or {})
    return _store(run, Version(*about, changes=changes), table)


def _store(run: Run, version: Version, table: pl.LazyFrame) -> Version:
    place = version_folder(run.folder, version.number)
    write_scanned(place / DECISIONS, table)
    stored = replace(version, file=file_digest(place / DECISIONS))
    write_json(place / ABOUT, asdict(stored))
    return stored


def standing_version(run: Run, table: pl.LazyFrame) -> Version | None:
    """Return the newest version if it is a refresh of these decisions."""
    newest = latest(run.folder)
    return newest if newest and newest.origin == "refresh" and newest.root == digest_of(table) else None


def refreshed_run(run: Run, version: Version) -> RefreshedRun:
    """Return the run with a refreshed version's folder."""
    place = version_folder(run.folder, version.number)
    return RefreshedRun(run.folder, run.recipe, run.recipe_folder, place)


def newest_run(folder: Path) -> Run:
    """Return a folder's run, in the state of its newest version."""
    run = open_run(folder)
    newest = latest(folder)
    return refreshed_run(run, newest) if newest is not None and newest.origin == "refresh" else run


def apply_version(run: RefreshedRun, filters: Results, decisions: pl.LazyFrame, verifier: str) -> StageResult:
    """Return existing decisions as a finished stage.

    Args:
        decisions: `curation.publish.versions.KEPT` rows, read by shard if in the problems' order.
    """
    job = StageRun(decisions_stage(run.parts[-1]), run, filters)
    problems, part = job.problems.folder, job.stage.part
    starts = list(accumulate(shard_counts(problems), initial=0))

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        own = decisions_on(decisions, frame["id"], starts[index])
        kept, dropped = split_rows(frame, part, own["reason"].to_list(), own["evidence"].to_list())
        return Shard(frame.height, {"kept": kept, "dropped": dropped, "decisions": own.drop("published")})

    folder = job.open("applied@1", digest_of(decisions), job.problems, verifier=verifier)
    return job.shard_by_shard(folder, work)


def changelog(folder: Path) -> str:
    """Return CHANGELOG.md, the newest version first."""
    sections = (version.changes for version in reversed(stored_versions(folder)))
    return "\n".join(["# Changelog\n", "Each version of this set against the one before.\n", *sections])


def summary(version: Version) -> str:
    """Return a version in one line."""
    counts = [(name.replace("_", " "), version.counts[name]) for name in versions.MOVED if version.counts[name]]
    changed = ", ".join(f"{name} {count:,}" for name, count in counts) or "no change"
    unchanged = f", unchanged {version.counts['kept']:,}" if version.counts["kept"] else ""
    return f"version {version.number} of {version.made_on}, judged by {version.policy}: {changed}{unchanged}"


def digest_of(table: pl.LazyFrame) -> str:
    """Return the hash of decisions, without their days."""
    return digest_in_order(table.drop("measured_on"))


def _shown_changes(old: pl.LazyFrame, new: pl.LazyFrame) -> tuple[dict[str, int], pl.DataFrame]:
    """Return the number of changes per class, and the first of each in `versions.changes`' order."""
    nothing = versions.KEPT.to_frame().with_columns(at=pl.lit(0, pl.UInt32))
    counts, shown = Counter[str](), list[pl.DataFrame]()
    sides = (table.with_row_index("at").select("at", *versions.COMPARED, "published") for table in (old, new))
    for before, after in chain([(nothing, nothing)], in_order(*sides)):
        changes = versions.changes(*map(_as_published, (before, after)))
        counts.update(versions.counts(changes))
        moved = changes.filter(pl.col("change").is_in(versions.MOVED)).group_by("change", maintain_order=True)
        shown.append(compact(moved.head(versions.EXAMPLES).select(changes.columns)))
    return dict(counts), pl.concat(shown).sort("gone", "at")


def _as_published(table: pl.DataFrame) -> pl.DataFrame:
    """Return a version's decisions, with problems over the set's size dropped."""
    over = pl.col("keep") & ~pl.col("published")
    reason = pl.when(over).then(pl.lit(DropReason.OVER_QUOTA.value)).otherwise("reason")
    return table.with_columns(reason=reason, keep=pl.col("published"))
