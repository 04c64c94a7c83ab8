"""Filter math problems by rules, then by a model's votes if enabled, and code problems by what can be asked."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from curation.filters.statements import filtering, own_rules
from curation.programs import filters
from curation.storage.stages import Shard, read_shard
from curation.verify.generator_scores import scorer_of
from flows.run.stage import JUDGING_TABLE, SOLUTIONS_TABLE, TESTS_TABLE, Stage, StageResult, StageRun, shard_counts
from flows.stages.question import question_stage

GROUP_ROWS = 40_000  # rows judged together, as each call compiles the rules anew


def filter_statements(job: StageRun) -> StageResult:
    """Keep complete open problems with one answer, and drop others with reason and evidence."""
    settings, problems = job.recipe.statements, job.problems.folder
    rules = [own_rules.find_rule(name, job.run.recipe_folder) for name in settings.rules]

    def work(indices: Sequence[int]) -> list[Shard]:
        frames = [read_shard(problems, "kept", index) for index in indices]
        rows = pl.concat(frames)
        judged = _of_the_verifier(filtering.apply_rules(rows, settings), rows)
        judged = own_rules.apply_own_rules(judged, rows, rules)
        shards, start = [], 0
        for frame in frames:
            kept, dropped = filtering.split_rows(frame, judged.slice(start, frame.height))
            shards.append(Shard(frame.height, {"kept": kept, "dropped": dropped}))
            start += frame.height
        return shards

    version = " ".join([filtering.VERSION, *(rule.label for rule in rules)])
    folder, counts = job.open(version, settings.digest(), job.problems), shard_counts(problems)
    shards = ((rows, index) for index, rows in enumerate(counts))
    rows_in = job.problems.manifest.kept
    return job.compute(folder, shards, work, total=sum(counts), rows_in=rows_in, group_rows=GROUP_ROWS)


def _of_the_verifier(judged: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Keep rows with their own scorer as they are."""
    own = pl.Series([scorer_of(meta) is not None for meta in rows["meta"]], dtype=pl.Boolean)
    texts = {name: rows[name] if name in rows.columns else None for name in judged.columns}
    return judged.with_columns(pl.when(own).then(text).otherwise(name).alias(name) for name, text in texts.items())


STATEMENTS = Stage(
    name="statements",
    title="Format filter",
    folder="stages/02-statements",
    work=filter_statements,
    runs_anywhere=True,
)

DOUBTFUL_ROWS = question_stage("doubtful_rows", "stages/02-doubtful-rows")


def filter_programs(job: StageRun) -> StageResult:
    """Drop what cannot be asked, with reasons.

    It reads the sources' tables, so it comes right after them.
    """
    problems = job.problems.folder

    def split(frame: pl.DataFrame, index: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        tables = [read_shard(problems, name, index) for name in (TESTS_TABLE, SOLUTIONS_TABLE, JUDGING_TABLE)]
        return filters.filter_programs(frame, *tables)

    return job.filter(job.open(filters.VERSION, "", job.problems), split)


PROGRAMS = Stage(
    name="programs",
    title="Format filter",
    folder="stages/02-programs",
    work=filter_programs,
    runs_anywhere=True,
)
