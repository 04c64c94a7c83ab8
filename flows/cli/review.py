"""`goldilocks review`: shows disputed labels, settles one, has models debate them, or audits the set.

The draw in DIR/audit.json is continued, unless N or the set's version differs. The estimate needs a verdict per
stratum; a rejected problem counts as a wrong label.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import polars as pl
from rich.console import Console

from curation.publish import review
from curation.publish.audit import AuditStratum, draw_places, estimate_audit
from curation.questions.debates import evidence
from curation.records import ConfigError, StoreError
from curation.storage.locks import lock_folder
from curation.storage.stages import atomic_write
from flows.cli.explain import open_curation
from flows.pipelines.run_tables import filters_of, find_id
from flows.publish.curated_set import published_mark
from flows.publish.debates import FILE, hold_debates, read_debates
from flows.publish.disputes import AUDIT, Audit, AuditRow, published_queue, read_audit, settle
from flows.publish.versions import newest_run
from flows.run.pipeline import read_results
from flows.run.run_folder import Run, verdicts_of_people
from flows.run.terminal import SafeConsole
from flows.stages.decisions import label_shards
from flows.stages.judging import open_judge

SHOWN = 20
"""Disputes or drawn rows that are printed; files have all."""


def review_run(folder: Path, beginning: str | None, answer: str | None, audit: int | None = None) -> None:
    """Print the queue or an audit, or record a verdict on a problem: its right reference, or None to reject it."""
    run, console = open_curation(folder), SafeConsole()
    if audit is not None:
        audit_run(run, audit, console)
    elif beginning is None:
        _print_queue(run, console)
    else:
        name = find_id(run, beginning)
        with open_judge(run) if answer is not None else nullcontext() as judge:
            settle(run, review.ReviewVerdict(name, answer), judge)
        decision = f"accepted with the reference {answer}" if answer is not None else "rejected"
        console.print(f"{name}: {decision}; the next `goldilocks run` into {run.folder} applies it.")


def debate_labels(
    folder: Path, judge: str, debater: str, min_score: float | None, limit: int | None, overrides: Sequence[str]
) -> None:
    """Have models debate a run's disputed labels, and print the scores."""
    open_curation(folder)
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
            by = f"judged by {debate['judge']}, argued by {debate['debater']}"
            console.print(f"  judged      {evidence(debate)}, {by}")
    if waiting.height > SHOWN:
        console.print(
            f"… and {waiting.height - SHOWN:,} more: {run.folder / 'curated' / 'disputed' / 'disputed.jsonl'}"
        )
    counts_text = ", ".join(f"{kind} {count:,}" for kind, count in review.dispute_counts(waiting).items())
    kinds = f" ({counts_text})" if counts_text else ""
    console.print(f"{waiting.height:,} disputed{kinds}; {len(verdicts):,} problems settled by people")


def audit_run(run: Run, size: int, console: Console) -> None:
    """Print the rows without a verdict, and the estimate.

    Raises:
        ConfigError: the run has no references to audit. StoreError: it is not finished.
    """
    if run.recipe.flow != "curate-math":
        raise ConfigError("--audit: programs are judged by tests; only a set of `curate-math` has references.")
    with lock_folder(run.folder):
        audit = read_audit(run.folder)
        if audit is None or (audit.size, audit.version) != (size, published_mark(run).get("version")):
            audit = _draw(run, size)
    judged = audit.wrong_labels(verdicts_of_people(run))
    waiting = [name for stratum in audit.strata for name in stratum.drawn if name not in judged]
    for name in waiting[:SHOWN]:
        row = audit.rows[name]
        console.print(f"{name}  reference {row.reference}")
        console.print(f"  statement   {' '.join(row.statement.split())}")
    if len(waiting) > SHOWN:
        console.print(f"… and {len(waiting) - SHOWN:,} more: {run.folder / AUDIT}")
    console.print(
        f"{len(judged):,} of {len(audit.rows):,} drawn rows judged; {len(waiting):,} wait for `goldilocks review "
        f"{run.folder} --accept ID --answer REFERENCE` or `--reject ID`"
    )
    estimate, problems = estimate_audit(audit.strata, judged), sum(stratum.size for stratum in audit.strata)
    if estimate is None:
        console.print("no share yet: each stratum of the draw needs at least one verdict")
        return
    console.print(
        f"wrong labels in the set of {problems:,}: {estimate.share:.2%}, 95 % interval {estimate.low:.2%} to "
        f"{estimate.high:.2%} ({estimate.wrong:,} of {estimate.judged:,} verdicts)"
    )


def _draw(run: Run, size: int) -> Audit:
    verifier, files = published_mark(run).get("verifier"), sorted((run.folder / "curated" / "data").glob("*.parquet"))
    if verifier is None or not files:
        raise StoreError(f"{run.folder} holds no finished run yet; finish it with `goldilocks run`.")
    rows = pl.scan_parquet(files, glob=False).select("statement", "answer", problem="id")
    names = rows.select("problem").collect().sort("problem")
    shards = label_shards(newest_run(run.folder), read_results(run, filters_of(run)), verifier)
    labels = shards.table(pl.lit(True)).select("problem", "wrong_label")
    known = names.join(labels, on="problem", how="left", maintain_order="left")  # nan: unknown
    strata = draw_places(known["wrong_label"].to_numpy(), size, run.recipe.seed)
    drawn = tuple(AuditStratum(count, tuple(names["problem"][places].to_list())) for count, places in strata)
    chosen = [name for stratum in drawn for name in stratum.drawn]
    found = rows.filter(pl.col("problem").is_in(chosen)).collect(engine="streaming").iter_rows()
    texts = {name: AuditRow(statement, answer) for statement, answer, name in found}
    audit = Audit(size, published_mark(run).get("version"), drawn, {name: texts[name] for name in chosen})
    atomic_write(run.folder / AUDIT, json.dumps(asdict(audit), indent=1, ensure_ascii=False) + "\n")
    return audit
