"""Keep the first of identical problems; drop all copies if references differ."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from curation.filters.dedup import exact
from curation.records import Outcome
from curation.storage.stages import Shard, read_shard
from flows.run.run_folder import Run
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

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        kept, dropped = exact.drop_exact_duplicates(frame, duplicates, conflicts)
        return Shard(frame.height, {"kept": kept, "dropped": dropped})

    return job.shard_by_shard(folder, work)


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
