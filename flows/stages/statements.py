"""The format filter of math: what cannot be asked with one answer leaves, multiple choice becomes an open question."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from curation.filters import statements
from curation.storage.stages import Shard, read_shard
from flows.run.stage import MATH, Stage, StageResult, StageRun

GROUP_ROWS = 40_000
"""Rows judged together: the expressions of the rules are compiled anew for every frame, which takes as long as judging
2,000 rows."""


def filter_statements(job: StageRun) -> StageResult:
    """Keep what can be asked, drop the rest with its reason."""
    settings, problems = job.recipe.statements, job.problems.folder

    def work(indices: Sequence[int]) -> list[Shard]:
        frames = [read_shard(problems, "kept", index) for index in indices]
        return _shards(statements.filter_statements(pl.concat(frames), settings), [frame.height for frame in frames])

    return job.by_groups(job.open(statements.VERSION, settings.digest(), job.problems), work, GROUP_ROWS)


def _shards(parts: statements.FilterResult, heights: Sequence[int]) -> list[Shard]:
    """Return what became of several shards' rows, shard by shard."""
    shards = []
    start = kept = dropped = 0
    for height in heights:
        keeps = int(parts.is_kept.slice(start, height).sum())
        tables = {"kept": parts.kept.slice(kept, keeps), "dropped": parts.dropped.slice(dropped, height - keeps)}
        shards.append(Shard(height, tables))
        start, kept, dropped = start + height, kept + keeps, dropped + height - keeps
    return shards


STATEMENTS = Stage(
    name="statements",
    title="Format filter",
    folder="stages/02-statements",
    work=filter_statements,
    domains=MATH,
    runs_anywhere=True,
)
