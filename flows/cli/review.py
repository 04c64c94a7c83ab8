"""`goldilocks review`: shows disputed labels, or settles one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console

from curation.publish import review
from curation.questions.debates import evidence
from curation.records import ConfigError, StoreError
from flows.cli.audit import audit_run
from flows.pipelines.run_tables import find_id
from flows.publish.debates import FILE, hold_debates, read_debates
from flows.publish.disputes import published_queue, settle
from flows.run.run_folder import Run, open_run, verdicts_of_people
from flows.run.terminal import SafeConsole
from flows.run.training import is_training
from flows.stages.judging import open_judge

SHOWN = 20
"""Disputes that are printed; DIR/curated/disputed has all."""

SPEECH_SHOWN = 240
"""Characters of a speech that are printed."""


def review_run(
    folder: Path, accept: str | None, reject: str | None, answer: str | None, audit: int | None = None
) -> None:
    """Print the queue or an audit, or record a person's verdict."""
    if is_training(folder):
        raise StoreError(f"{folder} holds a training run; review the labels of the run that made its set.")
    run = open_run(folder.absolute())
    if accept is not None and reject is not None:
        raise ConfigError("--accept and --reject: give one of them; each verdict is its own command.")
    if (accept is None) != (answer is None):
        raise ConfigError("--accept ID and --answer X belong together: which problem, and its right reference.")
    if audit is not None and (accept is not None or reject is not None):
        raise ConfigError("--audit shows rows; give --accept or --reject as a command of its own.")
    console = SafeConsole()
    if audit is not None:
        audit_run(run, audit, console)
        return
    if accept is None and reject is None:
        _print_queue(run, console)
        return
    name = find_id(run, accept or reject or "")
    with open_judge(run) if answer is not None else nullcontext() as judge:
        settle(run, review.ReviewVerdict(name, answer), judge)
    decision = f"accepted with the reference {answer}" if answer is not None else "rejected"
    console.print(f"{name}: {decision}; the next `goldilocks run` into {run.folder} applies it.")


def debate_labels(
    folder: Path, judge: str, debater: str, min_score: float | None, limit: int | None, overrides: Sequence[str]
) -> None:
    """Have models debate a run's disputed labels, and print the scores."""
    if is_training(folder):
        raise StoreError(f"{folder} holds a training run; debate the labels of the run that made its set.")
    debates = hold_debates(folder, judge, debater, min_score=min_score, limit=limit, overrides=overrides)
    console = SafeConsole()
    judged = debates.rows.drop_nulls("score").sort("score", maintain_order=True)
    for row in judged.head(SHOWN).iter_rows(named=True):
        console.print(f"{row['id']}  {evidence(row)}")
    if judged.height > SHOWN:
        console.print(f"… and {judged.height - SHOWN:,} more")
    pairs = debates.rows.height
    console.print(f"{pairs:,} pairs of answers: {judged.height:,} judged, {pairs - judged.height:,} without a score")
    for judge_name, debater_name in debates.rows.select("judge", "debater").unique().iter_rows():
        console.print(f"judged by {judge_name}, argued by {debater_name}")
    if debates.settled:
        console.print(f"{len(debates.settled):,} settled; the next `goldilocks run` into {folder} applies them")
    console.print(f"scores and speeches: {folder.absolute() / FILE}")


def _print_debate(row: Mapping[str, Any], console: Console) -> None:
    console.print(f"  judged      {evidence(row)}, judged by {row['judge']}, argued by {row['debater']}")
    for speech in row["transcript"]:
        said = " ".join(speech["text"].split())
        shown = said if len(said) <= SPEECH_SHOWN else f"{said[:SPEECH_SHOWN]} …"
        console.print(f"    round {speech['round']}, for the {speech['side']}: {shown}")


def _print_queue(run: Run, console: Console) -> None:
    published = published_queue(run)
    if published is None:
        raise StoreError(f"{run.folder} holds no finished run yet; finish it with `goldilocks run`.")
    verdicts = verdicts_of_people(run)
    waiting = review.dispute_queue([published], verdicts)
    debated = read_debates(run)
    for row in waiting.head(SHOWN).iter_rows(named=True):
        chance = f", wrong with probability {row['wrong_label']:.2f}" if row["wrong_label"] is not None else ""
        console.print(f"{row['id']}  {review.KINDS[row['kind']]}{chance} ({', '.join(row['rows'])})")
        console.print(f"  statement   {' '.join(row['statement'].split())}")
        console.print(f"  references  {' | '.join(str(reference) for reference in row['references'])}")
        console.print(f"  evidence    {row['evidence']}")
        for debate in debated.get(row["id"], ()):
            _print_debate(debate, console)
    if waiting.height > SHOWN:
        console.print(
            f"… and {waiting.height - SHOWN:,} more: {run.folder / 'curated' / 'disputed' / 'disputed.jsonl'}"
        )
    counts_text = ", ".join(f"{kind} {count:,}" for kind, count in review.dispute_counts(waiting).items())
    kinds = f" ({counts_text})" if counts_text else ""
    console.print(f"{waiting.height:,} disputed{kinds}; {len(verdicts):,} problems settled by people")
