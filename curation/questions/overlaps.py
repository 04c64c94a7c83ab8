"""Votes on whether a problem equals a benchmark's row."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from curation.filters.decontamination.overlap import OVERLAP, OverlapSettings, classify_hits
from curation.prompts.base import stored_prompt
from curation.questions.votes import Selected, Vote, text_request
from curation.records import Domain, DropReason, PromptRequest

ASK_FROM = 0.45
"""Min score from which a model is asked."""

NEAREST = 3
"""Max benchmark rows to ask about per problem."""

ASKED_FIGURES, ASKED_FORMULAS = 0.4, 0.8
"""Min agreement of a pair's figures, in running text and with formulas, unless set lower."""

PAIR = pl.Schema({"row": pl.Int64(), "benchmark": pl.String(), "benchmark_row": pl.Int64(), "score": pl.Float64()})
"""A problem's index in the scored frame, and its benchmark row."""

PROMPT = stored_prompt("overlaps")


def overlap_request(statement: str, benchmark: str, lang: str, domain: str = Domain.MATH) -> PromptRequest:
    """Return the request to compare a problem with a benchmark's row."""
    return text_request(f"The task of the set:\n\n{statement}\n\nThe task of the test:\n\n{benchmark}", lang, domain)


def near_pairs(scores: pl.DataFrame, settings: OverlapSettings, ask_from: float, nearest: int) -> pl.DataFrame:
    """Return pairs to ask about (`PAIR`), by problem and falling score."""
    hits = classify_hits(scores, settings)
    keys = ["row", "benchmark", "benchmark_row"]
    unclear = scores.join(hits.filter(pl.col("kind") == OVERLAP).select("row"), on="row", how="anti")
    unclear = unclear.join(hits.select(keys), on=keys, how="anti")
    best = unclear.filter(settings.agrees(ASKED_FIGURES, ASKED_FORMULAS))
    best = best.sort("row", -pl.col("score"), "benchmark", "benchmark_row")
    pairs = best.unique(keys, keep="first", maintain_order=True).filter(pl.col("score") >= ask_from)
    return pairs.filter(pl.int_range(pl.len()).over("row") < nearest).select(PAIR.names())


def compared_rows(frame: pl.DataFrame, pairs: pl.DataFrame, texts: Mapping[tuple[str, int], str]) -> Selected:
    """Return the pairs of a shard's rows.

    Args:
        texts: the benchmarks' statements.
    """
    about = pl.format("row {} of {}, score {}", "benchmark_row", "benchmark", pl.col("score").round(3))
    rows = pairs.with_columns(pl.col("row").cast(pl.UInt32).alias("at"), id=frame["id"][pairs["row"]], about=about)
    problems = frame[pairs["row"]].select("statement", "lang", "domain").iter_rows()
    keys = pairs.select("benchmark", "benchmark_row").iter_rows()
    requests = [overlap_request(text, texts[key], *more) for (text, *more), key in zip(problems, keys, strict=True)]
    return rows.drop("row"), list(requests)


OVERLAPS = Vote(
    name="overlaps",
    title="Overlaps by votes",
    prompt=PROMPT,
    words=("different", "same"),
    reasons={"same": DropReason.CONTAMINATED},
    select=compared_rows,
)
