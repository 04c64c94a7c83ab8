"""Gather a run's disputed labels, in DIR/curated/disputed/, and record people's verdicts on them.

A verdict in DIR/review.jsonl removes a problem from this queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curation.filters.statements.cleaning import without_layout
from curation.publish import review
from curation.publish.audit import AuditStratum
from curation.publish.receipts import read_stored
from curation.records import ConfigError, DropReason
from curation.storage.locks import lock_folder
from curation.storage.stages import read_table, write_parquet
from curation.verify.math_judge import Judge
from flows.run.pipeline import read_result
from flows.run.run_folder import Run, verdicts_of_people
from flows.run.stage import Results, Stage, StageResult, rows_of
from flows.stages.decisions import deciding_shards
from flows.stages.dedup import EXACT_DEDUP, NEAR_DEDUP
from flows.stages.questions import final_verdicts
from flows.stages.references import REFERENCES
from flows.stages.sources import SOURCES
from flows.stages.statements import DOUBTFUL_ROWS, STATEMENTS

VERSION = "disputes@1"

AUDIT = "audit.json"


def find_disputes(run: Run, results: Results) -> pl.DataFrame:
    """Return a finished run's disputed labels as `review.DISPUTE` rows."""

    def dropped(stage: Stage, reason: DropReason) -> pl.DataFrame:
        return read_table(results[stage].folder, "dropped", where=pl.col("reason") == reason)

    parts = [review.exact_conflicts(dropped(EXACT_DEDUP, DropReason.CONFLICTING_ANSWERS))]
    if (near := results.get(NEAR_DEDUP)) is not None:
        members = read_table(near.folder, "members")
        parts.append(review.near_conflicts(dropped(NEAR_DEDUP, DropReason.CONFLICTING_ANSWERS), members))
    if results.get(REFERENCES) is not None:
        unproven = dropped(REFERENCES, DropReason.UNPROVEN_REWRITING)
        parts.append(review.unproven_rewritings(unproven.with_columns(rewritten=without_layout(unproven["answer"]))))
    shards = deciding_shards(run, results)
    labels = None if shards is None else shards.table(pl.col("wrong_label") >= run.recipe.labels.queue_above)
    if labels is None:
        suspected = pl.col("reason") == DropReason.SUSPECTED_WRONG_LABEL
        labels = read_table(results.decisions[-1].folder, "decisions", where=suspected)
        labels = labels.rename({"top_wrong_answer": "rival_answer"}, strict=False)
    verdicts = _verdicts(run, results)
    doubtful = read_table(verdicts.folder, "verdicts", where=review.IS_DOUBTFUL) if verdicts else pl.DataFrame()
    for table, as_disputes in ((labels, review.wrong_labels), (doubtful, review.doubtful_verdicts)):
        if table.height:
            is_named = pl.col("id").is_in(table["problem"].unique().implode())
            parts.append(as_disputes(read_table(results.problems.folder, "kept", where=is_named), table))
    return review.dispute_queue(parts, verdicts_of_people(run))


def made_from(run: Run, results: Results) -> Mapping[str, str]:
    """Return digests of the queue's inputs, without filters and decisions."""
    verdicts = _verdicts(run, results)
    return {
        "verdicts": verdicts.manifest.digest if verdicts is not None else "",
        "verdicts_of_people": review.digest(verdicts_of_people(run)),
        **({"labels": run.recipe.labels.digest()} if run.recipe.weighs_labels else {}),
        "as": f"{VERSION} {review.VERSION}",
    }


def _verdicts(run: Run, results: Results) -> StageResult | None:
    return read_result(final_verdicts(run, run.parts[-1]), run, results.decisions[-1].folder.name)


def write_disputes(queue: pl.DataFrame, folder: Path) -> None:
    """Write the queue as Parquet and JSON lines."""
    write_parquet(folder / "disputed-00000-of-00001.parquet", queue)
    queue.write_ndjson(folder / "disputed.jsonl")


def published_queue(run: Run) -> pl.DataFrame | None:
    """Return the published set's queue, or None."""
    files = sorted((run.folder / "curated" / "disputed").glob("*.parquet"))
    return pl.concat([pl.read_parquet(file, glob=False) for file in files]) if files else None


def settle(run: Run, verdict: review.ReviewVerdict, judge: Judge | None) -> None:
    """Record a verdict on disk, for the next run.

    Args:
        judge: the run's open verifier, needed for an answer.

    Raises:
        ConfigError: the row was dropped before the review, or the verifier cannot judge against the answer.
        StoreError: a run works in the folder.
    """
    for stage in (STATEMENTS, DOUBTFUL_ROWS):
        kept, dropped = (rows_of(stage.folder_in(run), table, verdict.problem) for table in ("kept", "dropped"))
        if dropped.height and kept.is_empty():
            raise ConfigError(
                f"{verdict.problem}: `{stage.title}` dropped it as {dropped['reason'][0]}, before the review, and a "
                "verdict cannot bring it back; fix the source's row, or the settings that `goldilocks explain` names."
            )
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


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A row's statement and reference as drawn."""

    statement: str
    reference: str


@dataclass(frozen=True, slots=True)
class Audit:
    """The rows that `goldilocks review --audit` drew; rejected problems and corrected references count as wrong."""

    size: int
    version: int | None
    strata: tuple[AuditStratum, ...]
    rows: dict[str, AuditRow]

    def wrong_labels(self, verdicts: review.ReviewVerdicts) -> dict[str, bool]:
        """Return whether each drawn row with a verdict had a wrong label."""
        return {
            name: (answer := verdicts[name].answer) is None or answer != row.reference
            for name, row in self.rows.items()
            if name in verdicts
        }


def read_audit(folder: Path) -> Audit | None:
    """Return the draw in a run's folder, or None.

    Raises:
        StoreError: it is damaged.
    """
    return read_stored(folder / AUDIT, Audit, "the rows are drawn again")
