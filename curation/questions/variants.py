"""Variants of sometimes solved problems, written by a model with the same answer.

An accepted variant's answer is reached by the writer, without the reference, or by most attempts; its pass rate is in
the band.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from curation.filters.dedup.near import near_duplicates
from curation.prompts.base import stored_prompt
from curation.questions.proposals import Proposal, refusal_text, refused_rows
from curation.questions.rewriting import ProposedRewriting, main_script, own_verdict, read_rewriting
from curation.questions.votes import Selected
from curation.records import PROBLEM, Domain, DropReason, Outcome, PromptRequest, problem_id
from curation.verify.generator_scores import scorer_of
from curation.verify.math_judge import Judge

PROMPT = stored_prompt("variants", lambda request: f"The problem:\n\n{request.statement}{refusal_text(request)}")

STAGE = "variants"
_SOURCE = "\0variants"

VARIANT = pl.Schema({**PROBLEM, "variant_of": pl.String()})

REPEATED = "a near duplicate of a row of the set or of another variant"
UNPROVEN = "neither the writer's own answer nor most attempts of the policy are the reference"


@dataclass(slots=True)
class VariantChecks:
    """Checks of variants; ``writer`` and ``policy`` name models in the evidence."""

    judge: Judge
    problems: pl.DataFrame  # id, source, row, statement, answer and lang of the whole set
    overlaps: Callable[[pl.Series], Sequence[str | None]]  # with which benchmark each statement overlaps
    measure: Callable[[pl.DataFrame], pl.DataFrame]  # the policy's decisions on variants, by the recipe's band
    writer: str
    policy: str
    decisions: dict[str, pl.DataFrame] = field(default_factory=dict)
    """Measured variants' decisions, by id."""


def select(problems: pl.DataFrame, _checks: VariantChecks) -> Selected:
    """Return sometimes solved problems, except those that only their generator judges."""
    by_verifier = pl.Series([scorer_of(meta) is None for meta in problems["meta"]], dtype=pl.Boolean)
    rows = problems.with_row_index("at").filter(by_verifier)
    rows = rows.select("at", "id", "statement", "answer", "lang", "choices")
    texts = rows.select("id", "statement", "lang").iter_rows()
    return rows, [PromptRequest(name, statement, Domain.MATH, lang) for name, statement, lang in texts]


def accept(row: Mapping[str, Any], proposed: ProposedRewriting, checks: VariantChecks) -> Mapping[str, Any] | str:
    """Return variant and verdict on the writer's answer, or why it is refused."""
    before, after = main_script(row["statement"]), main_script(proposed.statement)
    if before != after:
        return f"the language changed: {before} became {after}"
    verdict = own_verdict(row["id"], row["answer"], row["lang"], proposed, checks.judge)
    name = problem_id(proposed.statement, row["choices"], Domain.MATH)
    return {"made": name, "new_statement": proposed.statement, "own_answer": verdict.outcome.value}


def review(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], checks: VariantChecks) -> list[str | None]:
    """Return why each variant is refused after comparison and measurement, or None."""
    new = [(result["made"], result["new_statement"], row["answer"], row["lang"]) for row, result in pairs]
    rows = pl.DataFrame(new, ["id", "statement", "answer", "lang"], orient="row")
    overlaps = checks.overlaps(rows["statement"])
    whys = [
        why or (f"overlaps with a benchmark: {name}" if name is not None else None)
        for why, name in zip(_repeated(rows, checks), overlaps, strict=True)
    ]
    sound = rows.filter(pl.Series([why is None for why in whys]))
    measured = checks.measure(sound).partition_by("problem", as_dict=True) if sound.height else {}
    for at, (_, result) in enumerate(pairs):
        if whys[at] is None:
            decision = checks.decisions[result["made"]] = measured[result["made"],]
            whys[at] = _defect(decision, result["own_answer"])
    return whys


def _repeated(rows: pl.DataFrame, checks: VariantChecks) -> list[str | None]:
    new = rows.with_row_index("row").with_columns(source=pl.lit(_SOURCE), row=pl.col("row").cast(pl.Int64))
    old = checks.problems.select(new.columns).with_columns(pl.col("row").cast(pl.Int64))
    members = near_duplicates(pl.concat([old, new]), old["source"].unique().sort().to_list())
    alike = pl.col("row").is_in(members.filter(pl.col("source") == _SOURCE)["row"].implode())
    taken = pl.col("id").is_in(checks.problems["id"].implode()) | ~pl.col("id").is_first_distinct()
    return new.select(pl.when(alike | taken).then(pl.lit(REPEATED)))["literal"].to_list()


def _defect(decision: pl.DataFrame, own_answer: str) -> str | None:
    ((keep, reason, correct, judged),) = decision.select("keep", "reason", "correct", "judged").iter_rows()
    if not keep:
        return f"its pass rate is out of the band: {correct} of {judged} ({reason})"
    proven = own_answer == Outcome.CORRECT.value or 2 * correct > judged
    return None if proven else f"{UNPROVEN}: {correct} of {judged}"


def apply(
    _question: Proposal[ProposedRewriting], problems: pl.DataFrame, proposals: pl.DataFrame, checks: VariantChecks
) -> dict[str, pl.DataFrame]:
    """Return accepted variants as ``kept``, refused problems as ``dropped`` (they stay), and decisions."""
    accepted = proposals.filter("accepted")
    dropped = refused_rows(problems, proposals, STAGE, DropReason.NO_VARIANT)
    tables = {"kept": VARIANT.to_frame(), "dropped": dropped}
    if accepted.is_empty():
        return tables
    originals = problems[accepted["at"].to_list()]
    decisions = pl.concat(checks.decisions[name] for name in accepted["made"])
    evidence = accepted.select(
        by=pl.lit(checks.writer),
        tries="tries",
        own_answer="own_answer",
        measured_by=pl.lit(checks.policy),
        correct=decisions["correct"],
        judged=decisions["judged"],
    )
    metas = [
        json.dumps(json.loads(meta or "{}") | {"variant_of": name, "variant": variant}, ensure_ascii=False)
        for name, meta, variant in zip(originals["id"], originals["meta"], evidence.to_dicts(), strict=True)
    ]
    kept = originals.with_columns(
        id=accepted["made"],
        group=pl.coalesce("group", "id"),
        statement=accepted["new_statement"],
        raw_statement="statement",
        solution=pl.lit(None, pl.String),
        meta=pl.Series(metas, dtype=pl.String),
        variant_of="id",
    )
    return {**tables, "kept": kept.select(VARIANT.names()), "decisions": decisions}


VARIANTS = Proposal(
    name=STAGE,
    title="Variants by a model",
    prompt=PROMPT,
    read=read_rewriting,
    accept=accept,
    review=review,
    result=pl.Schema({"made": pl.String(), "new_statement": pl.String(), "own_answer": pl.String()}),
    select=select,
    apply=apply,
    tries=2,
    nothing="no variant",
)
