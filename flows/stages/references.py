"""The reference check: every reference must be one that the verifier can judge against, before any attempt is made."""

from __future__ import annotations

from curation.records import DropReason
from curation.storage.stages import Shard, read_shard
from flows.run.stage import MATH, Stage, StageResult, StageRun
from flows.stages.base import split_rows
from flows.stages.judging import open_judge


def check_references(job: StageRun) -> StageResult:
    """Drop what the verifier cannot judge against, and say why."""
    stage, problems = job.stage.name, job.problems.folder
    with open_judge(job.run) as judge:

        def work(index: int) -> Shard:
            frame = read_shard(problems, "kept", index)
            checks = list(judge.check(frame.select("answer", "lang").iter_rows()))
            reasons = [
                None
                if check.usable
                else DropReason.VERIFIER_FAILED
                if check.failure
                else DropReason.UNVERIFIABLE_ANSWER
                for check in checks
            ]
            evidence = [f"{check.reason}: {answer}" for check, answer in zip(checks, frame["answer"], strict=True)]
            kept, dropped = split_rows(frame, stage, reasons, evidence)
            return Shard(frame.height, {"kept": kept, "dropped": dropped})

        return job.shard_by_shard(job.open(judge.version, job.recipe.verify.digest(), job.problems), work)


REFERENCES = Stage(
    name="references",
    title="Reference check",
    folder="stages/04-references",
    work=check_references,
    domains=MATH,
    runs_anywhere=True,
)
