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
    """The figures and other tokens of texts from `tokens.tokenize`."""

    def __init__(self, texts: pl.Series, tokens: pl.DataFrame) -> None:
        counts = tokens.group_by(pl.col("row").cast(pl.Int64), "token").agg(n=pl.len())
        self.counts, self.wording = counts.filter(is_figure()), counts.filter(~is_figure())
        self.formal = texts.cast(pl.String).str.contains(_FORMULA).fill_null(False)


def compare_figures(pairs: pl.DataFrame, left: Figures, right: Figures) -> pl.DataFrame:
    """Return pairs, in order, with `agreement`, `shared`, `formal` (either has formulas) and `contained`."""
    formal = left.formal.gather(pairs["row"]) | right.formal.gather(pairs["at"])
    joined = _compared(pairs, left.counts, right.counts).with_columns(formal=formal)
    larger, smaller = pl.max_horizontal("left_count", "right_count"), pl.min_horizontal("left_count", "right_count")
    contained = pl.when(smaller == 0).then(1.0).otherwise(pl.col("shared") / smaller)
    longer = pl.when(larger == 0).then(1.0).otherwise(pl.col("shared") / larger)
    loose = pl.when(smaller == 0).then(1.0).otherwise(pl.min_horizontal(contained, _OF_THE_LONGER * longer))
    agreement = pl.when("formal").then(longer).otherwise(loose)
    return joined.with_columns(agreement=agreement, contained=contained).drop("left_count", "right_count")


def compare_wording(pairs: pl.DataFrame, left: Figures, right: Figures) -> pl.DataFrame:
    """Return pairs, in order, with `wording`, the longer text's share of common words."""
    longest = pl.max_horizontal("left_count", "right_count")
    wording = pl.when(longest == 0).then(1.0).otherwise(pl.col("shared") / longest)
    compared = _compared(pairs.select("row", "at"), left.wording, right.wording)
    return pairs.with_columns(compared.select(wording=wording))


def _compared(pairs: pl.DataFrame, left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
    """Return pairs, in order, with their numbers of tokens: `left_count`, `right_count` and `shared`."""
    left = left.join(pairs, on="row", how="semi")
    right = right.join(pairs, left_on="row", right_on="at", how="semi")
    shared = (
        pairs.select("row", "at")
        .unique()
        .join(left, on="row")
        .join(right, left_on=["at", "token"], right_on=["row", "token"])
        .group_by("row", "at")
        .agg(shared=pl.min_horizontal("n", "n_right").sum())
    )
    return (
        pairs.join(left.group_by("row").agg(left_count=pl.col("n").sum()), on="row", how="left", maintain_order="left")
        .join(right.group_by(at="row").agg(right_count=pl.col("n").sum()), on="at", how="left", maintain_order="left")
        .join(shared, on=["row", "at"], how="left", maintain_order="left")
        .with_columns(pl.col("left_count", "right_count", "shared").fill_null(0))
    )
