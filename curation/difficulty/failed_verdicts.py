"""Verdicts that failed: how they are named, and how they are replaced once they were judged again.

A verdict fails where the verifier was killed at its limit (TIMEOUT) or failed itself (BROKEN). One comparison serves
all attempts with one answer, so they fail together. `curation.difficulty.early_stopping.StoppingRule.is_certain` says
what they leave undecided; `curation.difficulty.pass_rates.decide` puts their names into the evidence.

Invariants: a verdict that did not fail is never changed; answers that are new to a problem's classes get numbers behind
those that it has. Pure functions over frames; nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from curation.policies.excerpt import excerpt, shortened
from curation.records import Outcome
from curation.verify.classes import keep_classes
from curation.verify.judge_worker import DOUBTFUL
from curation.verify.math_judge import Verdict

FAILED = (Outcome.TIMEOUT, Outcome.BROKEN)
"""Outcomes that are the verifier's own failures."""

SHOWN_ANSWERS = 4
"""Most failed comparisons that the evidence of one problem names."""

SHOWN_CHARACTERS = 60
"""Of an answer, a reference and what failed, in the evidence."""


def has_failed() -> pl.Expr:
    """Return whether a `VERDICT` row is a failure of the verifier."""
    return pl.col("outcome").is_in([outcome.value for outcome in FAILED])


def is_doubtful() -> pl.Expr:
    """Return whether a `VERDICT` row is wrong by a comparison that read the answer in part, or not at all."""
    return (pl.col("outcome") == Outcome.WRONG.value) & pl.col("method").str.ends_with(DOUBTFUL)


def failed_verdicts(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Return problem and ``failures`` in words, of each problem with failed verdicts: attempts, answer, what failed.

    Args:
        verdicts: the `VERDICT` rows of one policy and one verifier that count.

    Example: ``attempts 10-15 answered "\\frac{1}{3}" against "0.333": timeout (killed at its limit)``
    """
    comparisons = (
        verdicts.filter(has_failed())
        .sort("problem", "index")
        .group_by("problem", "reference", "answer", "outcome", "method", maintain_order=True)
        .agg("index")
    )
    named: dict[str, list[str]] = {}
    for problem, reference, answer, outcome, method, indices in comparisons.iter_rows():
        against = f"against {excerpt(reference, SHOWN_CHARACTERS)}" if reference else "on the tests"
        shown, why = excerpt(answer or "", SHOWN_CHARACTERS), shortened(method, SHOWN_CHARACTERS)
        named.setdefault(problem, []).append(f"{_ranges(indices)} answered {shown} {against}: {outcome} ({why})")
    rows = [(problem, _joined(texts)) for problem, texts in named.items()]
    return pl.DataFrame(rows, schema={"problem": pl.String, "failures": pl.String}, orient="row")


def replace_failed(verdicts: pl.DataFrame, again: Sequence[Verdict]) -> pl.DataFrame:
    """Return one problem's verdicts with what the failed ones became when the whole problem was judged again.

    Args:
        verdicts: `VERDICT` rows of one problem, in the order of the index.
        again: the new verdict on each of them. What did not fail before keeps its row, whatever is said of it now.
    """
    columns = ("outcome", "answer_class", "method")
    old = list(verdicts.select(columns).iter_rows())
    classes = keep_classes(verdicts["answer_class"].to_list(), [verdict.answer_class for verdict in again])
    rows = [
        row if row[0] not in FAILED else (verdict.outcome.value, answer_class, verdict.method)
        for row, verdict, answer_class in zip(old, again, classes, strict=True)
    ]
    replaced = pl.DataFrame(rows, schema={name: verdicts.schema[name] for name in columns}, orient="row")
    return verdicts.with_columns(replaced)


def _joined(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - SHOWN_ANSWERS} more" if len(texts) > SHOWN_ANSWERS else ""
    return "; ".join(texts[:SHOWN_ANSWERS]) + more


def _ranges(indices: Sequence[int]) -> str:
    """Return ascending indices in words: attempts 1, 4-6."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    text = ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)
    return f"attempt {text}" if len(indices) == 1 else f"attempts {text}"
