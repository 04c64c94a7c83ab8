"""Tokens and similarities: exact, and the same whatever the batch."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.filters.dedup.minhash import (
    SLOTS,
    band_keys,
    band_rows,
    gram_hashes,
    jaccard,
    signatures,
    tokenize,
    tokenize_rows,
)


def tokens(text: str) -> list[str]:
    return tokenize(pl.Series([text]))["token"].to_list()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He has $1,000,000.00 or 2.50!", "he has 1000000 or 2.5"),
        (r"\(x^2\,-\,3\)", "x 2 minus 3"),
        (r"half-hour, a 5-year-old", "half hour a 5 year old"),
        (r"$x \leqslant -y$", "x ≤ minus y"),
        ("Twenty cats and three dogs", "20 cats and 3 dogs"),
        ("共有$3$个苹果", "共 有 3 个 苹 果"),
        (r"\text{cm} \left( 1{,}234 \right)", "cm 1234"),
        ("один ²", "один 2"),
        ("?!", ""),
    ],
)
def test_tokens(text: str, expected: str) -> None:
    assert tokens(text) == expected.split()


TEXTS = st.lists(st.lists(st.sampled_from("ab12+ "), max_size=12).map(" ".join), min_size=1, max_size=8)


@given(TEXTS)
@settings(max_examples=60, deadline=None)
def test_jaccard_is_that_of_the_sets(texts: list[str]) -> None:
    rows = tokenize_rows(pl.Series(texts))
    sets = []
    for text in texts:
        edged = ["", *tokens(text), ""]
        sets.append(set(itertools.pairwise(edged)) if len(edged) > 2 else set())
    one, other = np.triu_indices(len(texts), 0)
    expected = [len(sets[i] & sets[j]) / max(1, len(sets[i] | sets[j])) for i, j in zip(one, other, strict=True)]
    assert jaccard(rows, rows, (one, other)).tolist() == pytest.approx(expected)


@given(TEXTS)
@settings(max_examples=30, deadline=None)
def test_a_row_is_the_same_alone_and_in_company(texts: list[str]) -> None:
    together = tokenize_rows(pl.Series(texts))
    found = signatures(together)
    for place, text in enumerate(texts):
        alone = tokenize_rows(pl.Series([text]))
        assert together.figures[place] == alone.figures[0]
        assert (found[place] == signatures(alone)[0]).all()


def test_runs_stay_inside_their_row() -> None:
    rows = tokenize_rows(pl.Series(["a b c", None, "a b", "c a b"]))
    row, run = gram_hashes(rows, 2)
    assert row.tolist() == [0, 0, 2, 3, 3]
    assert run[0] == run[2] == run[4]
    assert len(gram_hashes(rows, 20)[0]) == 0


@pytest.mark.parametrize("threshold", [0.2, 0.4, 0.75, 0.9])
def test_bands_propose_what_they_promise(threshold: float) -> None:
    size = band_rows(threshold, 0.9)
    assert 1 - (1 - threshold**size) ** (SLOTS // size) >= 0.9
    assert len(list(band_keys(np.zeros((2, SLOTS), dtype=np.uint32), size))) == SLOTS // size
