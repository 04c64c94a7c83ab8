"""The format filter of math: what cannot be asked with one answer leaves, multiple choice becomes an open question.

Two stages: the rules with the scores of what they keep, and the threshold on the scores, so that another threshold
reads no text again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from curation.filters import statements
from curation.storage.stages import Shard, read_shard, read_table
from flows.run.run_folder import Run
from flows.run.stage import MATH, Stage, StageResult, StageRun

SCORES_TABLE = "scores"
USABILITY_VERSION = "usability@1"
GROUP_ROWS = 40_000
"""Rows judged together: the expressions of the rules are compiled anew for every frame, which takes as long as judging
2,000 rows."""


def filter_statements(job: StageRun) -> StageResult:
    """Keep what can be asked, drop the rest with its reason."""
    settings, problems = job.recipe.statements, job.problems.folder

    def work(indices: Sequence[int]) -> list[Shard]:
        frames = [read_shard(problems, "kept", index) for index in indices]
        return _shards(statements.score_statements(pl.concat(frames), settings), [frame.height for frame in frames])

    return job.by_groups(job.open(statements.VERSION, settings.digest(), job.problems), work, GROUP_ROWS)


def _shards(parts: statements.FilterResult, heights: Sequence[int]) -> list[Shard]:
    """Return what became of several shards' rows, shard by shard."""
    shards = []
    start = kept = dropped = 0
    for height in heights:
        keeps = int(parts.is_kept.slice(start, height).sum())
        tables = {
            "kept": parts.kept.slice(kept, keeps),
            "dropped": parts.dropped.slice(dropped, height - keeps),
            SCORES_TABLE: parts.scores.slice(kept, keeps),
        }
        shards.append(Shard(height, tables))
        start, kept, dropped = start + height, kept + keeps, dropped + height - keeps
    return shards


def drop_unusable(job: StageRun) -> StageResult:
    """Drop what the format filter kept with a score from the recipe's thresholds on; nothing is judged again."""
    settings, folder = job.recipe.statements, job.problems.folder

    def work(index: int) -> Shard:
        frame = read_shard(folder, "kept", index)
        kept, dropped = statements.drop_unusable(frame, read_shard(folder, SCORES_TABLE, index), settings)
        return Shard(frame.height, {"kept": kept, "dropped": dropped})

    thresholds = f"{settings.unusable_from:g}-{settings.suspected_from:g}"
    return job.shard_by_shard(job.open(USABILITY_VERSION, thresholds, job.problems), work)


def _score_of(_run: Run, folder: Path, problem: str) -> Iterator[str]:
    scores = read_table(folder, SCORES_TABLE, ["id", "score"])
    for score in scores.filter(pl.col("id") == problem)["score"] if scores.height else ():
        yield f"score {score:g}: the probability that it cannot be used as it stands"


STATEMENTS = Stage(
    name="statements",
    title="Format filter",
    folder="stages/02-statements",
    work=filter_statements,
    domains=MATH,
    explain=_score_of,
    runs_anywhere=True,
)

USABILITY = Stage(
    name="usability",
    title="Format classifier",
    folder="stages/02-usability",
    work=drop_unusable,
    domains=MATH,
)
