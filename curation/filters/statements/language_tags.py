"""Checks language tags by common words, else by identification; not in the paper."""

from __future__ import annotations

import polars as pl

from curation.languages.identification import identify_many
from curation.languages.vocabulary import language, languages

LEAST_LETTERS = 30
LEAST_SURE = 0.8

TAGS = tuple(lang.code for lang in languages())


def _in_doubt(tag: str) -> pl.Expr:
    text, vocabulary = pl.col("statement"), language(tag).identification
    if vocabulary.telling:
        return (
            text.str.contains_any(list(vocabulary.telling)) & text.str.contains_any(list(vocabulary.further))
        ).not_()
    doubt = pl.lit(False)
    if vocabulary.own_letters:
        doubt |= text.str.contains(vocabulary.own_letters).not_()
    if vocabulary.foreign_letters:
        doubt |= text.str.contains(vocabulary.foreign_letters)
    return doubt


def another_language() -> pl.Expr:
    """Return evidence of a wrong tag, as ``tag de, text fr (0.97)``, or null."""
    return pl.struct("statement", "lang").map_batches(_evidence, return_dtype=pl.String)


def _evidence(rows: pl.Series) -> pl.Series:
    frame = rows.struct.unnest().with_row_index("at")
    evidence: list[str | None] = [None] * frame.height
    for tag in frame["lang"].unique().drop_nulls().sort():
        if tag not in TAGS:
            continue
        doubted = frame.filter((pl.col("lang") == tag) & pl.col("statement").is_not_null()).filter(_in_doubt(tag))
        identified = identify_many(doubted["statement"].to_list())
        for at, guess in zip(doubted["at"], identified, strict=True):
            sure = guess.letters >= LEAST_LETTERS and guess.confidence >= LEAST_SURE
            if sure and guess.lang is not None and guess.lang != tag:
                evidence[at] = f"tag {tag}, text {guess.lang} ({guess.confidence:.2f})"
    return pl.Series("evidence", evidence, pl.String)
