"""The same problem in slightly other words: one row stays, the first that a person accepted, else the first."""

from __future__ import annotations

import polars as pl

from curation.filters.dedup import near
from curation.publish import review
from curation.records import PROBLEM, Outcome
from curation.storage.stages import Shard, read_shard, read_table
from flows.run.run_folder import Run
from flows.run.stage import Stage, StageResult, StageRun
from flows.stages.judging import open_judge, verifier_version


def find_near_duplicates(job: StageRun) -> StageResult:
    """Drop near duplicates; keep the members of each group beside them."""
    run, settings, problems = job.run, job.recipe.near_dedup, job.problems.folder
    accepted = [name for name, verdict in review.read_verdicts(run.folder).items() if verdict.answer is not None]
    settings_text = f"{settings.digest()} {verifier_version(run)} {run.recipe.verify.digest()} {sorted(accepted)}"
    folder = job.open(near.VERSION, settings_text, job.problems)
    if (result := job.finished(folder)) is not None:
        return result
    rows = read_table(problems, "kept", ["id", "source", "row", "statement", "answer", "lang"])
    members = near.near_duplicates(
        rows.with_columns(verified=pl.col("id").is_in(accepted)) if rows.height else PROBLEM.to_frame(),
        [source.name for source in run.recipe.sources],
        threshold=settings.threshold,
        figures_agree=settings.figures_agree,
    )
    pairs = near.reference_pairs(members)
    with open_judge(run) as judge:
        outcomes = list(judge.compare_pairs(pairs)) if pairs else []
    equal = {pair: outcome is Outcome.CORRECT for pair, outcome in zip(pairs, outcomes, strict=True)}

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        split = near.drop_near_duplicates(frame, members, equal, accepted)
        dropped = pl.concat([split.duplicates, split.disputed])
        shard_members = members.join(frame, on=["source", "row"], how="semi")
        return Shard(frame.height, {"kept": split.kept, "dropped": dropped, "members": shard_members})

    return job.shard_by_shard(folder, work)


def _is_enabled(run: Run) -> bool:
    return run.recipe.near_dedup.enabled


NEAR_DEDUP = Stage(
    name="near_dedup",
    title="Near dedup",
    folder="stages/06-near-dedup",
    work=find_near_duplicates,
    enabled=_is_enabled,
)
