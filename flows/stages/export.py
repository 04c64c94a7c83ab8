"""The curated set: the kept problems with their pass rates; those over the recipe's size leave here."""

from __future__ import annotations

from functools import partial

import polars as pl

from curation.publish import export
from curation.publish.merged_copies import merged_copies, with_copies
from curation.records import DROPPED, DropReason
from curation.storage.stages import Shard, read_shard, read_table
from flows.run.stage import Kind, Stage, StageResult, StageRun, shard_counts
from flows.stages.attempts import measured_on
from flows.stages.exact_dedup import EXACT_DEDUP
from flows.stages.near_dedup import NEAR_DEDUP


def export_problems(job: StageRun) -> StageResult:
    """Join the pass rates to what the last difficulty stage keeps, and drop what exceeds the recipe's size."""
    recipe, decided = job.recipe, job.results.decisions
    last, first = decided[-1].folder, decided[0].folder if len(decided) > 1 else None
    over_quota = export.over_quota(pl.DataFrame(), None, recipe.seed)
    if recipe.export.size is not None and decided[-1].manifest.kept:
        rows = read_table(last, "kept", ["id", "group", "source", "weight"])
        over_quota = export.over_quota(rows, recipe.export.size, recipe.seed)
    measured = measured_on(job.run, job.run.parts[-1])
    merging = [result for stage in (EXACT_DEDUP, NEAR_DEDUP) if (result := job.results.get(stage)) is not None]
    settings = f"{recipe.export.size} {recipe.seed} {measured}"
    folder = job.open(export.VERSION, settings, job.problems, *merging, *decided)
    if (result := job.finished(folder)) is not None:
        return result
    copies = _merged_copies(job)

    def work(index: int) -> Shard:
        kept, decisions = read_shard(last, "kept", index), read_shard(last, "decisions", index)
        if "measured_on" not in decisions.columns:
            decisions = decisions.with_columns(measured_on=pl.lit(measured))
        evidence = kept.select("id").join(over_quota, on="id", how="left", maintain_order="left")["evidence"]
        curated = export.curate(
            with_copies(kept.filter(evidence.is_null()), copies),
            decisions,
            read_shard(first, "decisions", index) if first is not None else None,
        )
        reason = DropReason.OVER_QUOTA.value
        dropped = kept.with_columns(evidence, pl.lit(export.STAGE).alias("stage"), pl.lit(reason).alias("reason"))
        over = dropped.filter(evidence.is_not_null()).select(DROPPED.names())
        return Shard(kept.height, {"kept": curated, "dropped": over})

    counts = shard_counts(last)
    shards = ((rows, partial(work, index)) for index, rows in enumerate(counts))
    return job.compute(folder, shards, total=sum(counts), rows_in=decided[-1].manifest.kept)


def _merged_copies(job: StageRun) -> pl.DataFrame:
    """Return the copies that the stages of dedup merged, by the row that stays."""
    exact, near = job.results.get(EXACT_DEDUP), job.results.get(NEAR_DEDUP)
    copy = ["id", "source", "row", "license", "reason"]
    nothing = pl.DataFrame()
    dropped = read_table(exact.folder, "dropped", copy) if exact is not None else nothing
    first = nothing
    if exact is not None and dropped.width:
        repeated = pl.col("id").is_in(dropped["id"].unique().implode())
        first = read_table(exact.folder, "kept", copy[:3], repeated)
    return merged_copies(
        first,
        dropped,
        read_table(near.folder, "dropped", copy) if near is not None else nothing,
        read_table(near.folder, "members") if near is not None else nothing,
    )


EXPORT = Stage(name="export", title="Curated set", folder="stages/10-export", work=export_problems, kind=Kind.EXPORT)
