"""What a model says of rows that the format filter is in doubt about: whom to ask about, and what the votes decide.

A row is in doubt where its score reaches ``doubtful.ask_from``, or where a rule found something that is not trusted to
drop it alone. Where enough votes can be read they decide, either way; else the score does, as without a model.

Invariants: pure functions; another threshold, of scores or of votes, asks nobody.
"""

from __future__ import annotations

import polars as pl

from curation.config import DoubtfulSettings
from curation.filters.votes import Ballot
from curation.prompts.usability import usability_request
from curation.records import PromptRequest

BALLOT = Ballot("usable", ("incomplete", "nothing", "several", "proof", "given", "reference"))
VOTES = pl.Schema({"at": pl.UInt32(), "id": pl.String(), "score": pl.Float64(), **BALLOT.schema})
"""One row per row that was asked about; ``at`` is its place among the kept rows of its shard, ``problem`` the request's
id."""


def doubtful_rows(kept: pl.DataFrame, scores: pl.DataFrame, settings: DoubtfulSettings) -> pl.DataFrame:
    """Return the rows to ask about: ``at``, id, statement, answer, lang and score.

    Args:
        kept: `PROBLEM` rows that the rules kept.
        scores: theirs, in the same order.
    """
    rows = kept.select("id", "statement", "answer", "lang").hstack(scores.select("score", "rule")).with_row_index("at")
    in_doubt = (pl.col("score") >= settings.ask_from) | pl.col("rule").is_not_null()
    return rows.filter(in_doubt & pl.col("statement").is_not_null() & pl.col("answer").is_not_null()).drop("rule")


def requests_of(rows: pl.DataFrame) -> list[PromptRequest]:
    """Return the request of each row, in order; two rows of one text have the same."""
    return [usability_request(*texts) for texts in rows.select("statement", "answer", "lang").iter_rows()]


def tally_opinions(rows: pl.DataFrame, requests: list[PromptRequest], attempts: pl.DataFrame) -> pl.DataFrame:
    """Return one `VOTES` row per row."""
    names = pl.Series([request.id for request in requests], dtype=pl.String)
    return rows.select("at", "id", "score").hstack(BALLOT.tally(names, attempts)).match_to_schema(VOTES)


def decide_opinions(votes: pl.DataFrame, settings: DoubtfulSettings) -> pl.DataFrame:
    """Return for each row of votes its ``at``, whether the model keeps it (null where too few votes can be read), and
    its word as evidence.
    """
    decided = BALLOT.decide(votes, settings.threshold, settings.min_votes)
    return votes.select("at").hstack(
        decided.select(model_keeps=pl.when("enough").then("keep"), model_word="evidence"),
    )
