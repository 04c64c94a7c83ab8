"""The last tier of the verifier: votes of a model on comparisons that stayed doubtful, off unless a recipe names one.

A verdict is doubtful where the verifier refused an answer and would not stand for it. Each such comparison of a problem
(reference and answer, however many attempts gave it) is one question; its votes lie in the attempt store under the
prompt's version. `decide_opinions` says what they come to, `apply_opinions` changes the verdicts.

Invariants: only verdicts that are WRONG and doubtful are asked about and can change: no proof, no refutation, no
missing answer and no failure is ever overruled; a comparison that the votes leave open, or that the budget left out,
stays as it is. Pure functions over frames.

Not here: who is asked (the flow), and the prompt (`curation.prompts.judging`).
"""

from __future__ import annotations

from enum import StrEnum

import polars as pl

from curation.prompts.judging import comparison_request
from curation.prompts.verdicts import read_verdict
from curation.records import Outcome
from curation.verify.judge_worker import DOUBTFUL

VERSION = "llm-judge@1"


class JudgeVote(StrEnum):
    """What one response says of a comparison."""

    SAME = "same"
    DIFFERENT = "different"
    UNSURE = "unsure"
    UNREADABLE = "unreadable"  # the response holds no verdict


class Decision(StrEnum):
    """What the votes on a comparison come to."""

    SAME = "same"
    DIFFERENT = "different"
    OPEN = "open"  # too few votes agree
    NOT_ASKED = "not_asked"  # the budget was spent


OPINION = pl.Schema(
    {
        "problem": pl.String(),
        "reference": pl.String(),
        "answer": pl.String(),
        "method": pl.String(),  # of the doubtful verdict
        "attempts": pl.Int32(),  # how many gave this answer
        "question": pl.String(),  # what the votes are filed under in the attempt store
        **{vote.value: pl.Int32() for vote in JudgeVote},
        "decision": pl.String(),
    }
)


def is_doubtful() -> pl.Expr:
    """Return whether a `VERDICT` row is one that a model may be asked about."""
    return (pl.col("outcome") == Outcome.WRONG.value) & pl.col("method").str.ends_with(DOUBTFUL)


def doubtful_comparisons(problems: pl.DataFrame, verdicts: pl.DataFrame) -> pl.DataFrame:
    """Return the comparisons to ask about, those of most attempts first: columns of `OPINION`, and ``text``, ``lang``.

    Args:
        problems: id, statement and lang of each problem, once.
        verdicts: their `VERDICT` rows.
    """
    grouped = (
        verdicts.filter(is_doubtful())
        .group_by("problem", "reference", "answer", maintain_order=True)
        .agg(pl.col("method").first(), pl.len().cast(pl.Int32).alias("attempts"))
        .join(problems, left_on="problem", right_on="id", how="inner", maintain_order="left")
        .sort("attempts", descending=True, maintain_order=True)
    )
    columns = ("statement", "lang", "reference", "answer")
    requests = [comparison_request(*row) for row in grouped.select(columns).iter_rows()]
    return grouped.with_columns(
        pl.Series("question", [request.id for request in requests], pl.String),
        pl.Series("text", [request.statement for request in requests], pl.String),
    ).drop("statement")


def read_vote(text: str | None) -> JudgeVote:
    """Return what a response says."""
    verdict = read_verdict(text, ("SAME", "DIFFERENT", "UNSURE"))
    return JudgeVote(verdict.lower()) if verdict is not None else JudgeVote.UNREADABLE


def decide_opinions(
    comparisons: pl.DataFrame, votes: pl.DataFrame, asked: int, *, agreement: float, min_votes: int
) -> pl.DataFrame:
    """Return one `OPINION` row per comparison, in their order.

    Args:
        comparisons: `doubtful_comparisons`.
        votes: `ATTEMPT` rows of their questions.
        asked: how many of them were asked, from the first on.
        agreement: least share of the readable votes that must say the same.
        min_votes: fewest readable votes for a decision.
    """
    said = votes.select(
        question="problem", vote=pl.Series([read_vote(text).value for text in votes["text"]], dtype=pl.String)
    )
    counts = said.group_by("question").agg(
        (pl.col("vote") == vote).sum().cast(pl.Int32).alias(vote.value) for vote in JudgeVote
    )
    frame = comparisons.join(counts, on="question", how="left", maintain_order="left")
    frame = frame.with_columns(pl.col(vote.value).fill_null(0) for vote in JudgeVote)
    readable = pl.sum_horizontal("same", "different", "unsure")
    decided = [
        pl.when((readable >= max(1, min_votes)) & (pl.col(word.value) >= agreement * readable - 1e-9)).then(
            pl.lit(word.value)
        )
        for word in (Decision.SAME, Decision.DIFFERENT)
    ]
    not_asked = pl.when(pl.int_range(pl.len()) >= asked).then(pl.lit(Decision.NOT_ASKED.value))
    return frame.with_columns(decision=pl.coalesce(not_asked, *decided, pl.lit(Decision.OPEN.value))).match_to_schema(
        OPINION, extra_columns="ignore"
    )


def apply_opinions(verdicts: pl.DataFrame, opinions: pl.DataFrame) -> pl.DataFrame:
    """Return the `VERDICT` rows with the doubtful ones decided on which the votes agree; others keep every byte."""
    agreed = opinions.filter(pl.col("decision").is_in([Decision.SAME.value, Decision.DIFFERENT.value]))
    keys = ("problem", "reference", "answer")
    votes = pl.concat_str(pl.col("same") + pl.col("different") + pl.col("unsure")).alias("_votes")
    said = pl.when(pl.col("decision") == Decision.SAME).then("same").otherwise("different").alias("_said")
    told = agreed.select(*keys, pl.col("decision").alias("_decision"), said, votes)
    both = verdicts.join(told, on=keys, how="left", maintain_order="left")
    changes = is_doubtful() & pl.col("_decision").is_not_null()
    is_same = changes & (pl.col("_decision") == Decision.SAME)
    method = pl.format(
        "{} (llm judge: {}, {} of {} votes)",
        pl.col("method").str.strip_suffix(DOUBTFUL),
        "_decision",
        "_said",
        "_votes",
    )
    return both.with_columns(
        outcome=pl.when(is_same).then(pl.lit(Outcome.CORRECT.value)).otherwise("outcome"),
        answer_class=pl.when(is_same).then(pl.lit(0, pl.Int32)).otherwise("answer_class"),
        method=pl.when(changes).then(method).otherwise("method"),
    ).select(verdicts.columns)


def agreement_with_people(decisions: pl.DataFrame, said: pl.DataFrame) -> tuple[int, int]:
    """Return how many decisions of the model a person has decided too, and how many of these alike.

    Args:
        decisions: question and decision, of any time.
        said: question, and ``same``: whether a person takes the two for the same.
    """
    agreed = decisions.filter(pl.col("decision").is_in([Decision.SAME.value, Decision.DIFFERENT.value]))
    both = agreed.join(said, on="question", how="inner")
    alike = both.filter((pl.col("decision") == Decision.SAME.value) == pl.col("same"))
    return both.height, alike.height
