"""The format filter of math: what cannot be asked with one answer leaves, multiple choice becomes an open question."""

from __future__ import annotations

from curation.filters import statements
from curation.storage.stages import Shard, read_shard
from flows.run.stage import MATH, Stage, StageResult, StageRun


def filter_statements(job: StageRun) -> StageResult:
    """Keep what can be asked, drop the rest with its reason."""
    settings, problems = job.recipe.statements, job.problems.folder

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        parts = statements.filter_statements(frame, settings)
        return Shard(frame.height, {"kept": parts.kept, "dropped": parts.dropped})

    return job.shard_by_shard(job.open(statements.VERSION, settings.digest(), job.problems), work)


STATEMENTS = Stage(
    name="statements",
    title="Format filter",
    folder="stages/02-statements",
    work=filter_statements,
    domains=MATH,
    runs_anywhere=True,
)
