"""Votes on whether answers that the verifier could not fully read equal the reference.

Invariant: only wrong and doubtful verdicts can change, and only if the votes agree.
"""

from __future__ import annotations

import polars as pl

from curation.difficulty.pass_rates import is_doubtful
from curation.prompts.base import stored_prompt
from curation.questions.votes import Selected, Vote, text_request
from curation.records import Outcome, PromptRequest
from curation.verify.judge_worker import DOUBTFUL

PAIR = ("problem", "reference", "answer")

PROMPT = stored_prompt("doubtful_verdicts")


def comparison_request(statement: str, lang: str, reference: str, answer: str) -> PromptRequest:
    """Return the request to compare answer and reference."""
    text = f"The problem:\n\n{statement}\n\nThe reference:\n\n{reference}\n\nThe student's answer:\n\n{answer}"
    return text_request(text, lang)


def doubtful_pairs(problems: pl.DataFrame, verdicts: pl.DataFrame, _stopped: pl.DataFrame) -> Selected:
    """Return doubtful pairs, most attempts first."""
    texts = problems.unique("id", maintain_order=True).select("id", "statement", "lang")
    doubtful = (
        verdicts.filter(is_doubtful())
        .group_by(PAIR, maintain_order=True)
        .agg(pl.col("method").first(), attempts=pl.len().cast(pl.Int32))
        .sort("attempts", descending=True, maintain_order=True)
    )
    rows = doubtful.join(texts, left_on="problem", right_on="id", maintain_order="left")
    columns = ("statement", "lang", "reference", "answer")
    requests = [comparison_request(*row) for row in rows.select(columns).iter_rows()]
    about = pl.format("'{}' for '{}'", "answer", "reference")
    return rows.with_columns(about=about, id="problem").drop("statement", "lang"), list(requests)


def change_verdicts(
    _vote: Vote, _problems: pl.DataFrame, votes: pl.DataFrame, verdicts: pl.DataFrame, stopped: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Return `VERDICT` rows with agreed doubtful ones decided; others keep every byte."""
    same, different = pl.col("_decision") == "same", pl.col("_decision") == "different"
    agreed = votes.select(*PAIR, _decision="decision", _evidence="evidence")
    both = verdicts.join(agreed, on=PAIR, how="left", maintain_order="left")
    decided = (is_doubtful() & (same | different)).fill_null(False)
    method = pl.format("{} (by {})", pl.col("method").str.strip_suffix(DOUBTFUL), "_evidence")
    changed = both.with_columns(
        outcome=pl.when(decided & same).then(pl.lit(Outcome.CORRECT.value)).otherwise("outcome"),
        answer_class=pl.when(decided & same).then(pl.lit(0, pl.Int32)).otherwise("answer_class"),
        method=pl.when(decided).then(method).otherwise("method"),
    )
    return {"verdicts": changed.select(verdicts.columns), "stopped": stopped}


DOUBTFUL_VERDICTS = Vote(
    name="doubtful_verdicts",
    title="doubtful verdicts by votes",
    prompt=PROMPT,
    words=("different", "same", "unsure"),
    threshold=1.0,
    pooled=False,
    select=doubtful_pairs,
    apply=change_verdicts,
)
