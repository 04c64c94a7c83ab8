r"""Whether two similar texts ask for the same thing: their figures, and in texts with formulas all signs of these.

A paraphrase keeps the numbers of a problem; a problem made from the same template has others. So where two texts are
alike, their figures are compared as multisets, and the part that agrees says which of the two it is:

  running text   figures are numbers, single letters and LaTeX commands; a number may be put into words ("half an
                 hour" for "30 minutes"), so what counts is the part of the text with fewer figures, or five quarters of
                 the part of the other where that is less: a short problem whose two numbers stand among ten is another;
  formulas       where one of the texts has any, figures stand for what is asked (``\arcsin 1`` and ``\arcsin -1``),
                 and nobody rewords them: what counts is the part of the text with more.

What is left of a text without its figures is its *wording*, the template's signature.

Invariants: a text's figures depend on the text alone; agreement is symmetric, 0 to 1, and 1 for two texts without
figures. Not here: how alike the texts are otherwise (`overlap`).
"""

from __future__ import annotations

import polars as pl

from curation.filters.dedup.minhash import tokenize

_FORMULA = r"\\[a-zA-Z(\[]|\$[^$]*[\\^_={}][^$]*\$|\$\s*-?[A-Za-z0-9.,+\-()/ ]{1,12}\$(?:\D|$)"
"""A LaTeX command, or a pair of dollar signs around what no sum of money is."""

_FIGURE = r"^(?:\d.*|\\.+|[b-ce-hj-lo-ru-z])$"
"""Numbers, commands, single letters; but for those that are words or are left of them: a, i, s, t, d, m (I'd, I'm)."""

_OF_THE_LONGER = 1.25
"""What the part of the text with more figures counts for: at the default threshold 44 % of them must agree."""

_NO_FIGURE = (r"\text", r"\begin", r"\end", r"\quad", r"\ldots", r"\dots", r"\cdots", r"\boxed", r"\overline")


class Figures:
    """The figures of texts, ready to be compared with those of others.

    Args:
        tokens: what `tokenize` says of the texts, with commands.
    """

    def __init__(self, texts: pl.Series, tokens: pl.DataFrame) -> None:
        is_figure = pl.col("token").str.contains(_FIGURE) & ~pl.col("token").is_in(list(_NO_FIGURE))
        counts = tokens.group_by(pl.col("row").cast(pl.Int64), "token").agg(n=pl.len())
        self.counts = counts.filter(is_figure)
        self.wording = counts.filter(~is_figure)
        totals = self.counts.group_by("row").agg(total=pl.col("n").sum())
        self.texts = (
            pl.DataFrame({"text": texts.cast(pl.String)})
            .with_row_index("row")
            .select(pl.col("row").cast(pl.Int64), formal=pl.col("text").str.contains(_FORMULA).fill_null(False))
            .join(totals, on="row", how="left", maintain_order="left")
            .with_columns(pl.col("total").fill_null(0))
        )

    @classmethod
    def of(cls, texts: pl.Series) -> Figures:
        """Return the figures of texts."""
        return cls(texts, tokenize(texts, commands=True))


def compare_figures(pairs: pl.DataFrame, left: Figures, right: Figures) -> pl.DataFrame:
    """Return the pairs with ``agreement``, ``shared`` (figures that both have), ``formal`` (whether one of the two has
    formulas) and ``contained`` (the agreement of texts of which one stands in the other), in their order.

    Args:
        pairs: ``row`` of ``left`` and ``at`` of ``right``.
    """
    mine = left.texts
    theirs = right.texts.select(at="row", formal_right="formal", total_right="total")
    joined = (
        pairs.join(mine, on="row", how="left", maintain_order="left")
        .join(theirs, on="at", how="left", maintain_order="left")
        .join(_shared(pairs, left.counts, right.counts), on=["row", "at"], how="left", maintain_order="left")
        .with_columns(formal=pl.col("formal") | pl.col("formal_right"), shared=pl.col("shared").fill_null(0))
    )
    most, fewest = pl.max_horizontal("total", "total_right"), pl.min_horizontal("total", "total_right")
    of = pl.when("formal").then(most).otherwise(fewest)
    contained = pl.when(of == 0).then(1.0).otherwise(pl.col("shared") / of)
    longer = pl.when("formal").then(1.0).otherwise(_OF_THE_LONGER * pl.col("shared") / most)
    agreement = pl.when(of == 0).then(1.0).otherwise(pl.min_horizontal(contained, longer))
    return joined.with_columns(agreement=agreement, contained=contained).drop("formal_right", "total", "total_right")


def compare_wording(pairs: pl.DataFrame, left: Figures, right: Figures) -> pl.DataFrame:
    """Return the pairs with ``wording``: how much of the longer text, its figures left out, stands in the other; in
    their order.
    """
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
    """Return how many tokens both texts of each pair have, as multisets."""
    return (
        pairs.select("row", "at")
        .unique()
        .join(left, on="row")
        .join(right, left_on=["at", "token"], right_on=["row", "token"])
        .group_by("row", "at")
        .agg(shared=pl.min_horizontal("n", "n_right").sum())
    )
