"""The format filter of math: what cannot be asked with one answer leaves, multiple choice becomes an open question.

What rules and the classifier find, with the scores of both; the threshold on what rules are worth; if the recipe names
a model for it, its votes on the rows that the filter is uncertain of; and the thresholds on the classifier's scores.
Each threshold is a stage of its own, so that another one reads no text again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from curation.filters import statements
from curation.storage.stages import Shard, read_shard
from flows.run.lookup import rows_of
from flows.run.run_folder import Run
from flows.run.stage import MATH, Kind, Stage, StageResult, StageRun
from flows.stages.question import Inputs, question_stage

REWRITTEN_TABLE = "rewritten"
FINDINGS_TABLE = "findings"
SCORES_TABLE = "scores"
RULED_VERSION = "ruled@1"
USABILITY_VERSION = "usability@1"
GROUP_ROWS = 40_000
"""Rows judged together: the expressions of the rules are compiled anew for every frame, which takes as long as judging
2,000 rows."""


def measure_statements(job: StageRun) -> StageResult:
    """Keep what every rule and the classifier find in each row; none is dropped here."""
    settings, problems = job.recipe.statements, job.problems.folder

    def work(indices: Sequence[int]) -> list[Shard]:
        frames = [read_shard(problems, "kept", index) for index in indices]
        return _shards(statements.measure(pl.concat(frames), settings), [frame.height for frame in frames])

    return job.by_groups(job.open(statements.VERSION, settings.digest(), job.problems), work, GROUP_ROWS)


def _shards(measured: statements.Measured, heights: Sequence[int]) -> list[Shard]:
    """Return what was found in several shards' rows, shard by shard."""
    shards, start = [], 0
    for height in heights:
        part = measured.part(start, height)
        tables = {REWRITTEN_TABLE: part.rewritten, FINDINGS_TABLE: part.verdicts, SCORES_TABLE: part.scores}
        shards.append(Shard(height, tables, kept_rows=height))
        start += height
    return shards


def filter_statements(job: StageRun) -> StageResult:
    """Drop what a rule finds from the recipe's threshold on, keep the rest with its scores; nothing is judged again."""
    settings, problems, measured = job.recipe.statements, job.problems.folder, job.results[VERDICTS]

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        tables = (read_shard(measured.folder, name, index) for name in (REWRITTEN_TABLE, FINDINGS_TABLE, SCORES_TABLE))
        parts = statements.drop_ruled(frame, statements.Measured(*tables), settings)
        return Shard(frame.height, {"kept": parts.kept, "dropped": parts.dropped, SCORES_TABLE: parts.scores})

    return job.shard_by_shard(job.open(RULED_VERSION, f"{settings.drop_from:g}", job.problems, measured), work)


def drop_unusable(job: StageRun) -> StageResult:
    """Drop what the format filter kept with a score from the recipe's thresholds on; nothing is judged again."""
    settings, folder = job.recipe.statements, job.problems.folder
    asked = job.results.get(DOUBTFUL_ROWS)

    def work(index: int) -> Shard:
        frame, scores = read_shard(folder, "kept", index), read_shard(folder, SCORES_TABLE, index)
        votes = None if asked is None else read_shard(asked.folder, "votes", index)
        kept, dropped = statements.drop_unusable(frame, scores, settings, votes)
        return Shard(frame.height, {"kept": kept, "dropped": dropped})

    thresholds = f"{settings.unusable_from:g}-{settings.suspected_from:g}"
    read = [job.problems, *([asked] if asked is not None else [])]
    return job.shard_by_shard(job.open(USABILITY_VERSION, thresholds, *read), work)


@contextmanager
def _with_scores(job: StageRun) -> Iterator[Inputs]:
    yield Inputs(lambda index: (read_shard(job.problems.folder, SCORES_TABLE, index),))


def _found_in(run: Run, folder: Path, problem: str) -> Iterator[str]:
    """Say what every rule finds where several do, or where none of them dropped the row; and its score, if kept."""
    verdicts = rows_of(VERDICTS.folder_in(run), FINDINGS_TABLE, problem).unique(maintain_order=True)
    is_dropped = rows_of(folder, "dropped", problem).height > 0
    for row in verdicts.iter_rows(named=True) if verdicts.height > is_dropped else ():
        yield f"{'finds':<10} {row['rule']}: {row['evidence']} ({row['reason']}), score {row['score']:g}"
    scores = rows_of(folder, SCORES_TABLE, problem)
    for score in scores["score"] if scores.height else ():
        yield f"score {score:g}: the probability that it cannot be used as it stands"


VERDICTS = Stage(
    name="statements.verdicts",
    title="Format verdicts",
    folder="stages/02-statements-verdicts",
    work=measure_statements,
    domains=MATH,
    kind=Kind.MEASURE,
    runs_anywhere=True,
)

STATEMENTS = Stage(
    name="statements",
    title="Format filter",
    folder="stages/02-statements",
    work=filter_statements,
    domains=MATH,
    explain=_found_in,
)

DOUBTFUL_ROWS = question_stage(
    "doubtful_rows", "stages/02-doubtful-rows", _with_scores, domains=MATH, kind=Kind.MEASURE
)

USABILITY = Stage(
    name="usability",
    title="Format classifier",
    folder="stages/02-usability",
    work=drop_unusable,
    domains=MATH,
)
