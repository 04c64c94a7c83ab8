"""Tokens and similarities: exact, and the same whatever the batch."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.filters.dedup.sketches import ShingledRows, jaccard, shingle
from curation.filters.dedup.tokens import shared_passages, tokenize, without_passages
from tests.curation.tables import check_table


def shingled(texts: list[str]) -> ShingledRows:
    return shingle(tokenize(pl.Series(texts)), len(texts))


def tokens(text: str) -> list[str]:
    return tokenize(pl.Series([text]))["token"].to_list()


TEXTS = st.lists(st.lists(st.sampled_from("ab12+ "), max_size=12).map(" ".join), min_size=1, max_size=8)


@given(TEXTS)
@settings(max_examples=12, deadline=None)
def test_jaccard_is_that_of_the_sets(texts: list[str]) -> None:
    rows = shingled(texts)
    sets = []
    for text in texts:
        edged = ["", *tokens(text), ""]
        sets.append(set(itertools.pairwise(edged)) if len(edged) > 2 else set())
    one, other = np.triu_indices(len(texts), 0)
    expected = [len(sets[i] & sets[j]) / max(1, len(sets[i] | sets[j])) for i, j in zip(one, other, strict=True)]
    assert jaccard(rows, one, other).tolist() == pytest.approx(expected)


def test_what_most_rows_of_a_source_share_is_taken_out_and_a_row_that_is_little_else_keeps_it() -> None:
    wrapper = "Think about the task step by step and put the result in a box at the end: "
    problems = ["how many sides has a cube?", "which number of legs do five dogs have?", "yes?", "what colour is snow?"]
    lines = tokenize(pl.Series([wrapper + text for text in problems]))
    left = without_passages(lines, shared_passages(lines, pl.Series(["a"] * 4)))
    texts = [" ".join(left.filter(pl.col("row") == row)["token"]) for row in range(4)]
    assert texts[:2] == ["how many sides has a cube", "which number of legs do 5 dogs have"]
    assert texts[2].startswith("think about")
    apart = shared_passages(lines, pl.Series(["a", "b", "c", "d"]))
    assert without_passages(lines, apart).equals(lines)


def test_tokens_without_a_numbering_in_front() -> None:
    check_table("tokens", lambda text: " ".join(tokens(text)))
    check_table("same tokens", lambda one, other: tokens(one) == tokens(other))
