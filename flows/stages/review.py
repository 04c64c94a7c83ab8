"""Apply people's verdicts on disputed labels: keep accepted references, drop rejected problems."""

from __future__ import annotations

from curation.publish import review
from curation.storage.stages import Shard, read_shard
from flows.run.run_folder import verdicts_of_people
from flows.run.stage import MATH, Stage, StageResult, StageRun


def apply_reviews(job: StageRun) -> StageResult:
    """Apply the verdicts of people."""
    verdicts, problems = verdicts_of_people(job.run), job.problems.folder

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        kept, dropped = review.apply_verdicts(frame, verdicts)
        return Shard(frame.height, {"kept": kept, "dropped": dropped})

    return job.shard_by_shard(job.open(review.VERSION, review.digest(verdicts), job.problems), work)


REVIEW = Stage(
    name="review",
    title="Review by people",
    folder="stages/03-review",
    work=apply_reviews,
    domains=MATH,
    enabled=lambda run: bool(verdicts_of_people(run)),
    comes_later=True,
)
