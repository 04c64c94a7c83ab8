"""Check and record a person's verdict on a disputed label."""

from __future__ import annotations

from curation.publish import review
from curation.records import ConfigError
from curation.storage.locks import lock_folder
from curation.verify.math_judge import Judge
from flows.run.lookup import rows_of
from flows.run.run_folder import Run
from flows.stages.sources import SOURCES


def settle(run: Run, verdict: review.ReviewVerdict, judge: Judge | None) -> None:
    """Record a verdict on disk, for the next run.

    Args:
        judge: the run's open verifier, needed for an answer.

    Raises:
        ConfigError: the verifier cannot judge against the answer.
        StoreError: a run works in the folder.
    """
    if verdict.answer is not None:
        assert judge is not None, verdict
        rows = rows_of(SOURCES.folder_in(run), "kept", verdict.problem)
        (check,) = judge.check([(verdict.answer, rows["lang"][0], rows["statement"][0])])
        if not check.usable:
            raise ConfigError(
                f"--answer {verdict.answer}: the verifier cannot judge against it ({check.reason}); write it plainly."
            )
    with lock_folder(run.folder):
        review.add_verdict(run.folder, verdict)


def take_back(run: Run, problem: str, reviewer: str | None) -> None:
    """Record that a reviewer withdraws the last verdict on a problem.

    Raises:
        StoreError: a run works in the folder.
    """
    with lock_folder(run.folder):
        review.undo_verdict(run.folder, problem, reviewer)
