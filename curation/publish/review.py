"""Disputed labels (`DISPUTE`), and people's verdicts on them.

A verdict is a line of ``DIR/review.jsonl``, applied by the next run: ``accept`` names the right reference, ``reject``
discards the problem, ``undo`` takes back the reviewer's last verdict.

Invariants: the file is append-only; ``raw_answer`` keeps a replaced reference.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curation.records import DROPPED, DropReason, StoreError

VERSION = "review@4"

STAGE = "review"

FILE = "review.jsonl"

_LOG = logging.getLogger(__name__)

ACCEPT, REJECT, UNDO = "accept", "reject", "undo"
"""A line's possible verdicts."""

KINDS: Mapping[str, str] = {
    "conflicting_references": "copies of one problem with different references",
    "near_conflict": "near duplicates with different references",
    "unproven_rewriting": "references that the verifier reads only without their layout, not proven the same",
    "suspected_wrong_label": "attempts that agree on another answer than the reference",
    "doubtful_verdict": "attempts with a doubtful verdict",
}

DISPUTE = pl.Schema(
    {
        "id": pl.String(),
        "kind": pl.String(),  # one of `KINDS`
        "statement": pl.String(),
        "references": pl.List(pl.String()),  # those that disagree, the problem's own reference first
        "evidence": pl.String(),
        "lang": pl.String(),
        "rows": pl.List(pl.String()),  # ``source:row`` of the rows it is about
        "wrong_label": pl.Float64(),  # probability that the reference is wrong; null without a model
    }
)

_BEFORE_REVIEW = "before review: "

IS_DOUBTFUL = pl.col("method").str.ends_with("(doubtful)")

SHOWN_VERDICTS = 5


@dataclass(frozen=True, slots=True)
class ReviewVerdict:
    """A person's verdict; ``answer`` is the right reference, None to reject."""

    problem: str
    answer: str | None
    reviewer: str | None = None
    note: str | None = None

    @property
    def content(self) -> str | None:
        """Return the reference with normalised spaces; None to reject."""
        return None if self.answer is None else " ".join(self.answer.split())


ReviewVerdicts = Mapping[str, ReviewVerdict]


def read_verdicts(folder: Path, reviewers: int = 1) -> dict[str, ReviewVerdict]:
    """Return the verdicts that count, by problem.

    Args:
        reviewers: how many must agree; with 1 the last line counts.

    Raises:
        StoreError: a line is no verdict.
    """
    agreed = {name: agreed_verdict(verdicts, reviewers) for name, verdicts in read_statements(folder).items()}
    return {name: verdict for name, verdict in agreed.items() if verdict is not None}


def read_statements(folder: Path) -> dict[str, list[ReviewVerdict]]:
    """Return verdicts that were not taken back, by problem.

    Raises:
        StoreError: a line is no verdict.
    """
    path = folder / FILE
    try:
        *lines, rest = path.read_bytes().split(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if rest and _parse_line(rest) is not None:
        lines.append(rest)
    elif rest:
        _LOG.warning("%s: its last line was cut off while it was written, and is ignored: %r", path, rest[:80])
    statements: dict[str, list[ReviewVerdict]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if (parsed := _parse_line(line)) is None:
            raise StoreError(f"{path}, line {number}: {line[:80]!r} is no verdict; mend or remove the line.")
        word, verdict = parsed
        stated = statements.pop(verdict.problem, [])
        if word != UNDO:
            stated.append(verdict)
        elif own := [at for at, statement in enumerate(stated) if statement.reviewer == verdict.reviewer]:
            del stated[own[-1]]
        if stated:
            statements[verdict.problem] = stated
    return statements


def agreed_verdict(statements: Sequence[ReviewVerdict], reviewers: int = 1) -> ReviewVerdict | None:
    """Return the verdict of enough people, or None."""
    last = {verdict.reviewer: verdict for verdict in statements}
    votes = Counter(verdict.content for verdict in last.values())
    current = (verdict for verdict in reversed(statements) if last[verdict.reviewer] is verdict)
    return next((verdict for verdict in current if votes[verdict.content] >= reviewers), None)


def _parse_line(line: bytes) -> tuple[str, ReviewVerdict] | None:
    try:
        content = json.loads(line)
        problem, answer, word = content["problem"], content.get("answer"), content.get("verdict")
        reviewer, note = content.get("reviewer"), content.get("note")
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    texts = isinstance(problem, str) and isinstance(reviewer, str | None) and isinstance(note, str | None)
    fits = isinstance(answer, str) and bool(answer.strip()) if word == ACCEPT else answer is None
    is_read = texts and fits and word in (ACCEPT, REJECT, UNDO)
    return (word, ReviewVerdict(problem, answer, reviewer, note)) if is_read else None


def add_verdict(folder: Path, verdict: ReviewVerdict) -> None:
    """Append a verdict and sync the file."""
    _append(folder, REJECT if verdict.answer is None else ACCEPT, verdict)


def undo_verdict(folder: Path, problem: str, reviewer: str | None) -> None:
    """Append a line that undoes a reviewer's last verdict."""
    _append(folder, UNDO, ReviewVerdict(problem, None, reviewer))


def _append(folder: Path, word: str, verdict: ReviewVerdict) -> None:
    about = {"reviewer": verdict.reviewer, "note": verdict.note}
    line = {"problem": verdict.problem, "verdict": word, "answer": verdict.answer}
    line |= {name: text for name, text in about.items() if text is not None}
    with (folder / FILE).open("ab+", buffering=0) as handle:
        handle.seek(0)
        content = handle.read()
        last = content.rpartition(b"\n")[2]
        if last and _parse_line(last) is not None:
            handle.write(b"\n")
        elif last:
            _LOG.warning("%s: a line that was cut off while it was written is removed: %r", folder / FILE, last)
            handle.truncate(len(content) - len(last))
        end = handle.seek(0, os.SEEK_END)
        text = json.dumps(line, ensure_ascii=False).encode() + b"\n"
        try:
            while text:
                text = text[handle.write(text) :]
            os.fsync(handle.fileno())
        except OSError:
            handle.truncate(end)
            raise


def digest(verdicts: ReviewVerdicts) -> str:
    """Return a hash of the verdicts in any order."""
    lines = sorted((verdict.problem, verdict.answer or "", verdict.answer is None) for verdict in verdicts.values())
    return hashlib.blake2b(json.dumps(lines).encode(), digest_size=8).hexdigest()


def apply_verdicts(problems: pl.DataFrame, verdicts: ReviewVerdicts) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a shard's rows with people's references, and its rejected rows."""
    verdict_frame = pl.DataFrame(
        [(verdict.problem, verdict.answer) for verdict in verdicts.values()],
        schema={"id": pl.String, "_reference": pl.String},
        orient="row",
    ).with_columns(_judged=pl.lit(True))
    joined = problems.join(verdict_frame, on="id", how="left", maintain_order="left")
    rejected = pl.col("_judged").fill_null(False) & pl.col("_reference").is_null()
    replaced = pl.col("_reference").is_not_null() & pl.col("_reference").ne_missing(pl.col("answer"))
    # a bare letter would be read as the right option's
    replaced_answer = pl.format(_BEFORE_REVIEW + "{}", pl.coalesce("raw_answer", "answer", pl.lit("")))
    kept = joined.filter(~rejected).with_columns(
        raw_answer=pl.when(replaced).then(replaced_answer).otherwise("raw_answer"),
        answer=pl.coalesce("_reference", "answer"),
    )
    dropped = joined.filter(rejected).with_columns(
        stage=pl.lit(STAGE), reason=pl.lit(DropReason.REJECTED.value), evidence=pl.lit("a person rejected the problem")
    )
    return kept.select(problems.columns), dropped.select(DROPPED.names())


def keep_accepted_labels(decisions: pl.DataFrame, unsuspecting: pl.DataFrame, verdicts: ReviewVerdicts) -> pl.DataFrame:
    """Return decisions without suspicions against accepted labels.

    Args:
        unsuspecting: the same rows, decided with ``wrong_label_share`` = 1.
    """
    accepted = pl.Series([name for name, verdict in verdicts.items() if verdict.answer is not None], dtype=pl.String)
    is_suspected = decisions["reason"] == DropReason.SUSPECTED_WRONG_LABEL
    is_accepted = is_suspected & decisions["problem"].is_in(accepted.implode())
    columns = (
        pl.when(is_accepted.fill_null(False)).then(unsuspecting[name]).otherwise(decisions[name]).alias(name)
        for name in decisions.columns
    )
    return decisions.select(columns)


def exact_conflicts(dropped: pl.DataFrame) -> pl.DataFrame:
    """Return exact copies with different references, a dispute per id."""
    grouped = dropped.group_by("id", maintain_order=True).agg(
        pl.col("statement", "lang", "evidence").first(),
        pl.col("answer").unique(maintain_order=True).alias("references"),
        _source_row().alias("rows"),
    )
    return _as_disputes(grouped, "conflicting_references")


def near_conflicts(dropped: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return near duplicates whose reference differs from the kept row's."""
    kept = members.select("source", "row", "kept_id", "kept_source", "kept_row", "kept_answer")
    conflicts = dropped.join(kept, on=["source", "row"], how="left", maintain_order="left")
    return _as_disputes(
        conflicts,
        "near_conflict",
        references=pl.concat_list("answer", "kept_answer"),
        rows=pl.concat_list(_source_row(), pl.format("{}:{}", "kept_source", "kept_row")),
        evidence=pl.format("{}; the row that stays is problem {}", "evidence", "kept_id"),
    )


def unproven_rewritings(dropped: pl.DataFrame) -> pl.DataFrame:
    """Return both forms of references that are judged only after rewriting."""
    return _as_disputes(dropped, "unproven_rewriting", references=pl.concat_list("answer", "rewritten"))


def wrong_labels(problems: pl.DataFrame, accused: pl.DataFrame) -> pl.DataFrame:
    """Return problems with probably wrong references.

    Args:
        accused: ``problem``, ``rival_answer``, ``evidence`` and, by a model, ``wrong_label``.
    """
    joined = problems.join(accused, left_on="id", right_on="problem", how="inner", maintain_order="left")
    return _as_disputes(joined, "suspected_wrong_label", references=pl.concat_list("answer", "rival_answer"))


def doubtful_verdicts(problems: pl.DataFrame, doubtful: pl.DataFrame) -> pl.DataFrame:
    """Return problems with doubtful verdicts, and the compared answers."""
    line = pl.format("{} attempts: {} {} ({})", "len", "answer", "outcome", "method")
    counts = doubtful.group_by("problem", "answer", "outcome", "method", maintain_order=True).len()
    ordered = counts.sort("problem", "len", descending=[False, True], maintain_order=True)
    lines = ordered.group_by("problem", maintain_order=True).agg(
        line.head(SHOWN_VERDICTS).str.join("; ").alias("evidence"), answers=pl.col("answer").unique(maintain_order=True)
    )
    doubted = problems.join(lines, left_on="id", right_on="problem", how="inner", maintain_order="left")
    references = pl.concat_list("answer", "answers").list.unique(maintain_order=True)
    return _as_disputes(doubted, "doubtful_verdict", references=references)


def dispute_queue(tables: Sequence[pl.DataFrame], verdicts: ReviewVerdicts) -> pl.DataFrame:
    """Return disputes without a person's verdict, by falling probability."""
    known = [table.match_to_schema(DISPUTE, missing_columns="insert") for table in tables]
    whole = pl.concat([DISPUTE.to_frame(), *known]).sort(
        "wrong_label", descending=True, nulls_last=True, maintain_order=True
    )
    return whole.filter(~pl.col("id").is_in(list(verdicts))) if verdicts else whole


def dispute_counts(disputes: pl.DataFrame) -> dict[str, int]:
    """Count disputes by kind, in `KINDS`' order."""
    counts = dict(disputes.group_by("kind").len().iter_rows())
    return {kind: counts[kind] for kind in KINDS if counts.get(kind)}


def _source_row() -> pl.Expr:
    return pl.format("{}:{}", "source", "row")


def _as_disputes(frame: pl.DataFrame, kind: str, **columns: pl.Expr) -> pl.DataFrame:
    own = {} if "rows" in frame.columns else {"rows": pl.concat_list(_source_row())}
    named = frame.with_columns(**{**own, "kind": pl.lit(kind), **columns})
    named = named.with_columns(pl.col("references").list.drop_nulls())
    return named.match_to_schema(DISPUTE, extra_columns="ignore", missing_columns={"wrong_label": "insert"})
