"""Make the curated set, up to the recipe's size."""

from __future__ import annotations

from functools import partial

import polars as pl

from curation.publish import export
from curation.publish.export import merged_copies, with_copies
from curation.questions.proposals import with_additions
from curation.questions.variants import VARIANT
from curation.records import DROPPED, DropReason
from curation.storage.stages import Shard, read_optional_shard, read_shard, read_table
from curation.translation.rows import TRANSLATED, with_decisions
from flows.run.pipeline import read_result
from flows.run.stage import Kind, Stage, StageResult, StageRun, shard_counts
from flows.stages.attempts import measured_on
from flows.stages.dedup import EXACT_DEDUP, NEAR_DEDUP
from flows.stages.questions import VARIANTS, doubtful_verdicts_of
from flows.stages.translation import TRANSLATION

_TEXTS = dict.fromkeys(("problem", "reference", "answer"), pl.String())
_NO_VOTES = pl.DataFrame(schema={**_TEXTS, "attempts": pl.Int32(), "decision": pl.String()})


def export_problems(job: StageRun) -> StageResult:
    """Add pass rates and additions to kept rows, and drop what exceeds the size."""
    recipe, decided = job.recipe, job.results.decisions
    last, first = decided[-1].folder, decided[0].folder if len(decided) > 1 else None
    over_quota = export.over_quota(pl.DataFrame(), None, recipe.seed)
    if recipe.export.size is not None and decided[-1].manifest.kept:
        rows = read_table(last, "kept", ["id", "group", "source", "weight"])
        over_quota = export.over_quota(rows, recipe.export.size, recipe.seed)
    measured = measured_on(job.run, job.run.parts[-1], last.name)
    merging = [result for stage in (EXACT_DEDUP, NEAR_DEDUP) if (result := job.results.get(stage)) is not None]
    settings = f"{recipe.export.size} {recipe.seed} {measured}"
    added, varied = job.results.get(TRANSLATION), job.results.get(VARIANTS)
    additions, voted = [result for result in (added, varied) if result is not None], _doubtful_verdicts(job, last.name)
    folder = job.open(export.VERSION, settings, job.problems, *merging, *decided, *additions, *voted)
    if (result := job.finished(folder)) is not None:
        return result
    copies = _merged_copies(job)
    votes = pl.concat([_NO_VOTES, *(read_table(result.folder, "votes", _NO_VOTES.columns) for result in voted)])

    def work(index: int) -> Shard:
        kept, decisions = read_shard(last, "kept", index), read_shard(last, "decisions", index)
        if "measured_on" not in decisions.columns:
            decisions = decisions.with_columns(measured_on=pl.lit(measured))
        evidence = kept.select("id").join(over_quota, on="id", how="left", maintain_order="left")["evidence"]
        stays = export.with_accepted(with_copies(kept.filter(evidence.is_null()), copies), votes)
        before = read_shard(first, "decisions", index) if first is not None else None
        new, variants = TRANSLATED.to_frame(), VARIANT.to_frame()
        for addition in additions:
            own = read_optional_shard(addition.folder, "decisions", index)
            if own is not None:
                own = own.with_columns(measured_on=pl.lit(measured)).select(decisions.columns)
                decisions = pl.concat([decisions, own])
        if added is not None:
            new = _of_kept(added, index, "translation_of", stays)
            decisions = with_decisions(decisions, new)
            if before is not None:
                before = with_decisions(before, new.with_columns(pass_rate_of="translation_of"))
        rows = with_additions(stays, new, "translation_of")
        if varied is not None:
            variants = _of_kept(varied, index, "variant_of", stays)
            rows = with_additions(rows, variants, "variant_of").drop("variant_of")
        curated = export.curate(rows, decisions, before)
        reason = DropReason.OVER_QUOTA.value
        dropped = kept.with_columns(evidence, pl.lit(export.STAGE).alias("stage"), pl.lit(reason).alias("reason"))
        over = dropped.filter(evidence.is_not_null()).select(DROPPED.names())
        return Shard(kept.height + new.height + variants.height, {"kept": curated, "dropped": over})

    counts = shard_counts(last)
    shards = ((rows, partial(work, index)) for index, rows in enumerate(counts))
    rows_in = None if additions else decided[-1].manifest.kept
    return job.compute(folder, shards, total=sum(counts), rows_in=rows_in)


def _of_kept(added: StageResult, index: int, original: str, kept: pl.DataFrame) -> pl.DataFrame:
    return read_shard(added.folder, "kept", index).join(kept, left_on=original, right_on="id", how="semi")


def _doubtful_verdicts(job: StageRun, verifier: str) -> list[StageResult]:
    stages = [stage for part in job.run.parts if (stage := doubtful_verdicts_of(part)).enabled(job.run)]
    return [result for stage in stages if (result := read_result(stage, job.run, verifier)) is not None]


def _merged_copies(job: StageRun) -> pl.DataFrame:
    exact, near = job.results.get(EXACT_DEDUP), job.results.get(NEAR_DEDUP)
    copy = ["id", "source", "row", "license", "reason"]
    first = dropped = near_dropped = members = pl.DataFrame()
    if exact is not None:
        dropped = read_table(exact.folder, "dropped", copy)
        if dropped.width:
            first = read_table(exact.folder, "kept", copy[:3], pl.col("id").is_in(dropped["id"].unique().implode()))
    if near is not None:
        near_dropped = read_table(near.folder, "dropped", copy[1:])
        members = read_table(near.folder, "members", ["source", "row", "kept_source", "kept_row"])
    return merged_copies(first, dropped, near_dropped, members)


EXPORT = Stage(name="export", title="Curated set", folder="stages/10-export", work=export_problems, kind=Kind.EXPORT)

PUBLISHED = (TRANSLATION, VARIANTS, EXPORT)
"""Stages after math's last decisions; code has no variants."""
