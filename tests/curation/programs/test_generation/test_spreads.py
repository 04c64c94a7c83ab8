"""Values that echo earlier ones, and values that columns share."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from curation.programs.test_generation.hints import Hints
from curation.programs.test_generation.spreads import ValueSpread, draw_word


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


@pytest.mark.parametrize("mode", ["low", "high", "ends", "narrow", "few", "whole"])
def test_many_values_are_drawn_from_those_that_single_ones_come_from(mode: str) -> None:
    for seed in range(40):
        spread = ValueSpread(mode, random.Random(seed), Hints())
        at_once = set(spread.many(0, 3, 9, 500))
        assert at_once == {spread.one(0, 3, 9) for _ in range(500)}
    wide = ValueSpread("whole", random.Random(1), Hints()).many(0, 0, 10**18, 500)
    assert len(set(wide)) == 500
    assert any(value % 2 for value in wide)


def test_letters_of_long_words_are_about_as_likely_as_one_another() -> None:
    counts: Counter[str] = Counter()
    for seed in range(40):
        counts.update(draw_word("abcde", 5000, random.Random(seed)))
    assert set(counts) == set("abcde")
    assert max(counts.values()) < 1.5 * min(counts.values())
    assert draw_word("é漢", 100, random.Random(0)).strip("é漢") == ""


def test_great_values_are_often_the_greatest_alone() -> None:
    lists = [ValueSpread("high", random.Random(seed), Hints()).many(0, 0, 1000, 3) for seed in range(40)]
    assert 15 < sum(values == [1000] * 3 for values in lists) < 40
    assert {value for values in lists for value in values} == {999, 1000}
    assert set(ValueSpread("high", random.Random(1), Hints()).many(0, 0, 1000, 200)) <= {999, 1000}
