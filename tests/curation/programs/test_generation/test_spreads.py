"""Values that echo earlier ones, and values that columns share."""

from __future__ import annotations

import random

from curation.programs.test_generation.hints import Hints
from curation.programs.test_generation.spreads import ValueSpread


def test_lists_echo_earlier_ones_within_their_range() -> None:
    copies = turned = negated = gaps = 0
    for seed in range(300):
        spread = ValueSpread("echoed", random.Random(seed), Hints())
        first, second = spread.many(0, -50, 50, 6), spread.many(1, -50, 50, 6)
        assert all(-50 <= value <= 50 for value in first + second)
        copies += first == second
        turned += first == second[::-1] != second
        negated += [-value for value in first] == second != first
        gaps += not any(first[1::2]) or not any(first[::2])
    assert min(copies, turned, negated, gaps) >= 5
    assert all(value >= 3 for value in ValueSpread("echoed", random.Random(1), Hints()).many(0, 3, 9, 40))


def test_words_echo_earlier_ones() -> None:
    anagrams = 0
    for seed in range(200):
        spread = ValueSpread("echoed", random.Random(seed), Hints())
        first, second = spread.word("abcdefgh", 6), spread.word("abcdefgh", 6)
        assert len(second) == 6
        assert set(second) <= set("abcdefgh")
        anagrams += sorted(first) == sorted(second)
    assert anagrams >= 60
    assert set(spread.word("xyz", 4)) <= set("xyz")


def test_columns_share_a_few_numbers() -> None:
    for seed in range(50):
        spread = ValueSpread("shared", random.Random(seed), Hints())
        first = {spread.one(0, 1, 100) for _ in range(50)}
        second = {spread.one(1, 1, 100) for _ in range(50)}
        assert first == second
        assert len(first) <= 4
        assert first <= set(range(1, 101))
