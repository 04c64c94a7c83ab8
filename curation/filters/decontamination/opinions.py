"""What a model says of problems that are near a benchmark's row, but not near enough: whom to ask about, and the votes.

A problem that overlaps with nothing is in doubt where its nearest rows reach ``overlap_votes.ask_from``; it is asked
about with each of these, ``overlap_votes.nearest`` at most. A template, the same words with other figures, is another
problem and asked about by nobody; so is a row with clearly other figures (`ASKED_FIGURES`, `ASKED_FORMULAS`).

Invariants: pure functions; another threshold, of scores or of votes, asks nobody about a pair again.
"""

from __future__ import annotations

import polars as pl

from curation.filters.decontamination.behaviour import with_trial_worth
from curation.filters.decontamination.overlap import OVERLAP, OverlapSettings, agrees, classify_hits
from curation.filters.votes import Ballot

ASKED_FIGURES, ASKED_FORMULAS = 0.4, 0.8
"""Agreement of the figures from which on a pair is asked about, in running text and where there are formulas, or the
setting where that is lower. Most paraphrases that scores miss have .4 to .5 (`bench_overlap_votes`)."""

BALLOT = Ballot("different", ("same",))

PAIR = pl.Schema({"row": pl.Int64(), "benchmark": pl.String(), "benchmark_row": pl.Int64(), "score": pl.Float64()})
"""A problem, by its position in the frame that was scored, and the row that it is asked about with."""

VOTES = pl.Schema({"id": pl.String(), **PAIR, **BALLOT.schema})
"""One line a pair; ``problem`` is the request's id."""


def doubtful_pairs(scores: pl.DataFrame, settings: OverlapSettings, ask_from: float, nearest: int = 1) -> pl.DataFrame:
    """Return the pairs to ask about (`PAIR`), by problem, then falling score with what running both adds.

    Args:
        scores: in the `overlap.SCORE` schema.
        nearest: rows of benchmarks that a problem is asked about with, at most.
    """
    hits = classify_hits(scores, settings)
    keys = ["row", "benchmark", "benchmark_row"]
    left = scores.join(hits.filter(pl.col("kind") == OVERLAP).select("row"), on="row", how="anti")
    left = left.join(hits.select(keys), on=keys, how="anti")
    left = left.filter(agrees(min(settings.figures, ASKED_FIGURES), min(settings.formulas, ASKED_FORMULAS)))
    best = left.with_columns(score=with_trial_worth()).sort("row", -pl.col("score"), "benchmark", "benchmark_row")
    pairs = best.unique(keys, keep="first", maintain_order=True).filter(pl.col("score") >= ask_from)
    return pairs.filter(pl.int_range(pl.len()).over("row") < nearest).select(PAIR.names())


def decide_pairs(votes: pl.DataFrame, threshold: float, least: int) -> pl.DataFrame:
    """Return ``row`` and evidence of the problems that leave: of the votes on a pair enough are readable, and enough of
    these say the same. The evidence is the nearest such row's.
    """
    decided = BALLOT.decide(votes.select(BALLOT.schema.names()), threshold, least)
    evidence = pl.format(
        "{} of {} votes say the same as row {} of {}, score {}",
        "same", "readable", "benchmark_row", "benchmark", pl.col("score").round(3),
    )  # fmt: skip
    same = votes.filter(~decided["keep"]).select("row", evidence=evidence)
    return same.unique("row", keep="first", maintain_order=True)
