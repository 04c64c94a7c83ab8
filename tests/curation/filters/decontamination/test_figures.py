"""Figures of two texts: how far they agree."""

from __future__ import annotations

import polars as pl
import pytest

from curation.filters.decontamination.figures import Figures, compare_figures
from curation.filters.dedup.tokens import tokenize


def figures(text: str) -> Figures:
    return Figures(pl.Series([text]), tokenize(pl.Series([text])))


@pytest.mark.parametrize(
    ("left", "right", "agreement"),
    [
        ("He buys 3 pens and 8 books.", "She has 3 pens, and 8 books are hers.", 1.0),
        ("He buys 3 pens for half an hour.", "He buys 3 pens for 30 minutes.", 1.25 / 2),
        ("There are 5 roses and 5 lilies.", "Pick 3 of 5, 4 of 6, 5 of 4, 6 of 7, and drop 1.", 1.25 * 2 / 9),
        ("How many are there?", "How many are left?", 1.0),
        ("Find $x^2$ for $x=3$.", "Find $x^2$ for $x=4$.", 3 / 4),
    ],
)
def test_a_short_text_whose_figures_stand_among_many_agrees_little(left: str, right: str, agreement: float) -> None:
    pair = pl.DataFrame({"row": [0], "at": [0]}, schema={"row": pl.Int64, "at": pl.Int64})
    for one, other in ((left, right), (right, left)):
        compared = compare_figures(pair, figures(one), figures(other))
        assert compared["agreement"].item() == pytest.approx(agreement)
