"""Drop code problems that are no stdin-to-stdout program, or lack a solution."""

from __future__ import annotations

from curation.programs import filters
from curation.storage.stages import Shard, read_shard
from flows.run.stage import CODE, Stage, StageResult, StageRun
from flows.stages.base import JUDGING_TABLE, SOLUTIONS_TABLE, TESTS_TABLE


def filter_programs(job: StageRun) -> StageResult:
    """Drop what cannot be asked, with reasons.

    It reads the sources' tables, so it comes right after them.
    """
    problems = job.problems.folder

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        tables = [read_shard(problems, name, index) for name in (TESTS_TABLE, SOLUTIONS_TABLE, JUDGING_TABLE)]
        kept, dropped = filters.filter_programs(frame, *tables)
        return Shard(frame.height, {"kept": kept, "dropped": dropped})

    return job.shard_by_shard(job.open(filters.VERSION, "", job.problems), work)


PROGRAMS = Stage(
    name="programs",
    title="Format filter",
    folder="stages/02-programs",
    work=filter_programs,
    domains=CODE,
    runs_anywhere=True,
)
