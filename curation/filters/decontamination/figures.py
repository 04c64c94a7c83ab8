"""Compares texts' figures: numbers, letters, functions and symbols.

Invariants: agreement is symmetric, from 0 to 1, and 1 without figures.
"""

from __future__ import annotations

import polars as pl

from curation.filters.dedup.tokens import FUNCTIONS, SYMBOLS

_FORMULA = r"\\[a-zA-Z(\[]|\$[^$]*[\\^_={}][^$]*\$|\$\s*-?[A-Za-z0-9.,+\-()/ ]{1,12}\$(?:\D|$)"
"""A LaTeX command, or dollar signs not of money."""

_FIGURE = r"^(?:\d.*|\\.+|[b-ce-hj-lo-ru-z]|\p{Greek}|[" + SYMBOLS[5:] + "])$"  # without ≤ ≥ ≠ < >
"""Not letters that are words (a, i) or endings (s, t, d, m)."""

_OF_THE_LONGER = 1.25
"""With `overlap.FIGURES`, 44 % of the longer text's figures must agree."""


def is_figure() -> pl.Expr:
    """Return whether `token` is a figure."""
    return pl.col("token").str.contains(_FIGURE) | pl.col("token").is_in(FUNCTIONS)


class Figures:
    """The figures of texts from `tokens.tokenize`."""

    def __init__(self, texts: pl.Series, tokens: pl.DataFrame) -> None:
        counts = tokens.group_by(pl.col("row").cast(pl.Int64), "token").agg(n=pl.len())
        self.counts, self.wording = counts.filter(is_figure()), counts.filter(~is_figure())
        totals = self.counts.group_by("row").agg(total=pl.col("n").sum())
        self.texts = (
            pl.DataFrame({"text": texts.cast(pl.String)})
            .with_row_index("row")
            .select(pl.col("row").cast(pl.Int64), formal=pl.col("text").str.contains(_FORMULA).fill_null(False))
            .join(totals, on="row", how="left", maintain_order="left")
            .with_columns(pl.col("total").fill_null(0))
        )


def compare_figures(pairs: pl.DataFrame, left: Figures, right: Figures) -> pl.DataFrame:
    """Return pairs, in order, with `agreement`, `shared`, `formal` (either has formulas) and `contained`."""
    theirs = right.texts.select(at="row", formal_right="formal", total_right="total")
    joined = (
        pairs.join(left.texts, on="row", how="left", maintain_order="left")
        .join(theirs, on="at", how="left", maintain_order="left")
        .join(_shared(pairs, left.counts, right.counts), on=["row", "at"], how="left", maintain_order="left")
        .with_columns(formal=pl.col("formal") | pl.col("formal_right"), shared=pl.col("shared").fill_null(0))
    )
    most, fewest = pl.max_horizontal("total", "total_right"), pl.min_horizontal("total", "total_right")
    contained = pl.when(fewest == 0).then(1.0).otherwise(pl.col("shared") / fewest)
    longer = pl.when(most == 0).then(1.0).otherwise(pl.col("shared") / most)
    loose = pl.when(fewest == 0).then(1.0).otherwise(pl.min_horizontal(contained, _OF_THE_LONGER * longer))
    agreement = pl.when("formal").then(longer).otherwise(loose)
    return joined.with_columns(agreement=agreement, contained=contained).drop("formal_right", "total", "total_right")


def compare_wording(pairs: pl.DataFrame, left: Figures, right: Figures) -> pl.DataFrame:
    """Return pairs, in order, with `wording`, the longer text's share of common words."""
    mine = left.wording.group_by("row").agg(words=pl.col("n").sum())
    theirs = right.wording.group_by(at="row").agg(words_right=pl.col("n").sum())
    joined = (
        pairs.join(mine, on="row", how="left", maintain_order="left")
        .join(theirs, on="at", how="left", maintain_order="left")
        .join(
            _shared(pairs, left.wording, right.wording).rename({"shared": "same"}),
            on=["row", "at"],
            how="left",
            maintain_order="left",
        )
    )
    longest = pl.max_horizontal(pl.col("words").fill_null(0), pl.col("words_right").fill_null(0))
    wording = pl.when(longest == 0).then(1.0).otherwise(pl.col("same").fill_null(0) / longest)
    return joined.with_columns(wording=wording).drop("words", "words_right", "same")


def _shared(pairs: pl.DataFrame, left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
    return (
        pairs.select("row", "at")
        .unique()
        .join(left, on="row")
        .join(right, left_on=["at", "token"], right_on=["row", "token"])
        .group_by("row", "at")
        .agg(shared=pl.min_horizontal("n", "n_right").sum())
    )
