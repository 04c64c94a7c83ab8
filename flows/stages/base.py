"""What the stages of every line share: the judge as the recipe wants it, rows parted by reason, shards in step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import polars as pl

from curation.records import DROPPED
from curation.store import Shard, Stage
from curation.verify.code_judging import VERSION as PROGRAMS
from curation.verify.code_judging import ProgramJudge
from curation.verify.judge import Judge, MathJudge
from flows.run.run_folder import Done, Run, drive, shard_counts


def open_judge(run: Run) -> Judge:
    """The verifier as the recipe wants it, of answers or of programs; use it as a context manager."""
    if run.recipe.flow == "curate-code":
        from flows.stages.code_stages import Programs

        return ProgramJudge(Programs(run), run.recipe.seed, run.recipe.workers, run.recipe.code.group_tests)
    settings = run.recipe.verify
    return MathJudge(run.recipe.workers, settings.limit_s, settings.memory_mb, settings.engine)


def verifier_version(run: Run) -> str:
    """Name and version of the verifier that the recipe asks for."""
    if run.recipe.flow == "curate-code":
        return PROGRAMS
    with open_judge(run) as judge:
        return judge.version


def split_rows(
    problems: pl.DataFrame, stage: str, reasons: Sequence[str | None], evidence: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Kept rows and dropped rows, by a reason per row."""
    judged = problems.with_columns(
        pl.lit(stage).alias("stage"),
        pl.Series("reason", reasons, pl.String),
        pl.Series("evidence", evidence, pl.String),
    )
    kept = judged.filter(pl.col("reason").is_null()).select(problems.columns)
    return kept, judged.filter(pl.col("reason").is_not_null()).select(DROPPED.names())


def shard_by_shard(stage: Stage, before: Done, work: Callable[[int], Shard]) -> Done:
    """Drive a stage whose shards are those of the stage before."""
    counts = shard_counts(before.folder)
    shards = ((rows, partial(work, index)) for index, rows in enumerate(counts))
    return drive(stage, shards, total=sum(counts), rows_in=before.manifest.kept)
