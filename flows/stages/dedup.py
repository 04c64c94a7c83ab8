"""Keep the first of identical problems, and a single row of near duplicates.

Identical problems with different references leave. Of near duplicates the first that a person accepted stays, else the
first.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from curation.filters.dedup import exact, near
from curation.filters.dedup.sketches import Ranks
from curation.records import Outcome
from curation.storage.stages import Shard, StageFolder, read_shard
from flows.run.progress import bar
from flows.run.run_folder import Run, accepted_references
from flows.run.stage import Stage, StageResult, StageRun, shard_counts
from flows.stages.judging import open_judge, verifier_version


def find_duplicates(job: StageRun) -> StageResult:
    """Drop repeated problems."""
    run, problems = job.run, job.problems.folder
    settings = f"{verifier_version(run)} {run.recipe.verify.digest()}"  # it says whether two references are equal
    folder = job.open(exact.VERSION, settings, job.problems)
    if (result := job.finished(folder)) is not None:
        return result

    def parts() -> Iterator[pl.DataFrame]:
        for index in range(len(shard_counts(problems))):
            yield read_shard(problems, "kept", index, ["id", "source", "row", "answer"])

    duplicates = exact.exact_duplicates(parts)
    conflicts = _conflicts(run, duplicates)
    return job.filter(folder, lambda frame, _: exact.drop_exact_duplicates(frame, duplicates, conflicts))


def _conflicts(run: Run, duplicates: exact.ExactDuplicates) -> dict[str, str]:
    pairs = duplicates.pairs()
    if not pairs:
        return {}
    with open_judge(run) as judge:
        outcomes = list(judge.compare_pairs((reference, other) for _, reference, other in pairs))
    return {
        name: "references: " + " | ".join(duplicates.references[name])
        for (name, _, _), outcome in zip(pairs, outcomes, strict=True)
        if outcome is not Outcome.CORRECT
    }


EXACT_DEDUP = Stage(name="exact_dedup", title="Exact dedup", folder="stages/05-exact-dedup", work=find_duplicates)


def find_near_duplicates(job: StageRun) -> StageResult:
    """Drop near duplicates; keep each group's members as a table."""
    run, settings, problems = job.run, job.recipe.near_dedup, job.problems.folder
    accepted = accepted_references(run)
    settings_text = f"{settings.digest()} {verifier_version(run)} {run.recipe.verify.digest()} {accepted}"
    folder = job.open(near.VERSION, settings_text, job.problems)
    if (result := job.finished(folder)) is not None:
        return result
    shards = StageShards(problems)
    ranks = near.source_ranks(shards, [source.name for source in run.recipe.sources], accepted)
    members = near.cluster_members(shards, ranks, _similar_pairs(job, shards, ranks, accepted), settings.threshold)
    pairs = near.reference_pairs(members)
    with open_judge(run) as judge:
        outcomes = list(judge.compare_pairs(pairs)) if pairs else []
    equal = {pair: outcome is Outcome.CORRECT for pair, outcome in zip(pairs, outcomes, strict=True)}

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        shard_members = members.join(frame, on=["source", "row"], how="semi")
        kept, dropped = near.drop_near_duplicates(frame, shard_members, equal, accepted)
        return Shard(frame.height, {"kept": kept, "dropped": dropped, "members": shard_members})

    return job.shard_by_shard(folder, work)


class StageShards:
    """A finished stage's kept rows, a shard at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = len(shard_counts(folder))

    def __len__(self) -> int:
        return self._count

    def read(self, index: int, columns: Sequence[str]) -> pl.DataFrame:
        """Return these columns of one shard."""
        return read_shard(self._folder, "kept", index, columns)


def _similar_pairs(job: StageRun, shards: StageShards, ranks: Ranks, accepted: Sequence[str]) -> pl.DataFrame:
    """Return pairs above a floor, stored so that a higher threshold measures nothing again."""
    settings, sources = job.recipe.near_dedup, [source.name for source in job.recipe.sources]
    floor = min(settings.threshold, near.FLOOR)
    measured_with = f"{floor} {sources} {accepted}"
    place = job.stage.folder_in(job.run)
    read = {job.problems.name: job.problems.manifest.digest}
    folder = StageFolder(place.with_name(place.name + "-pairs"), "near_dedup.pairs", near.VERSION, measured_with, read)
    if folder.manifest() is None:
        folder.prepare()
        scratch = folder.folder / "sketches"
        with bar(f"{job.stage.title}: sketches", job.problems.manifest.kept, is_part=True) as advance:
            pairs = near.similar_pairs(shards, ranks, scratch, floor, advance=advance)
        folder.write(0, Shard(len(ranks), {"pairs": pairs}, kept_rows=len(ranks)))
        folder.close(1)
        shutil.rmtree(scratch, ignore_errors=True)
    return read_shard(folder.folder, "pairs", 0)


NEAR_DEDUP = Stage(
    name="near_dedup",
    title="Near dedup",
    folder="stages/06-near-dedup",
    work=find_near_duplicates,
    enabled=lambda run: run.recipe.near_dedup.enabled,
)
