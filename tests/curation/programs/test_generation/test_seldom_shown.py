"""Rows that never repeat, counts at hinted numbers, values that the samples never show."""

from __future__ import annotations

import random

from curation.programs.test_generation.forms import InputForm, infer_form
from curation.programs.test_generation.growing import grow_shapes
from curation.programs.test_generation.hints import Hints, find_hints, hinted_count
from curation.programs.test_generation.limits import StatedBound, bounds_in_order
from curation.programs.test_generation.making import InputMaker
from curation.programs.test_generation.selecting import select_tests

CARDS = ["3\n1 C\n2 C\n1 D\n", "4\n5 H\n5 C\n2 H\n1 S\n", "2\n3 H\n3 S\n"]


def grown(inputs: list[str], shape: str, count: int, hints: Hints | None = None, *, careful: bool = False) -> list[str]:
    form = infer_form(inputs, "", careful=careful)
    assert isinstance(form, InputForm)
    return list(grow_shapes(form, set(), [shape] * count, "seed", 4000, hints or Hints()))


def test_rows_that_no_given_input_repeats_seldom_repeat() -> None:
    texts = [text for text in grown(CARDS, "small whole", 60) if len(text.split("\n")) > 4]
    different = [text for text in texts if len(set(lines := text.strip().split("\n")[1:])) == len(lines)]
    assert len(different) > len(texts) / 2
    assert len(different) < len(texts)


def test_counts_lie_at_hinted_numbers_and_at_half_of_the_greatest() -> None:
    draw = random.Random(1)
    counts = [hinted_count(Hints((3, 26, 900)), 0, 100, draw) for _ in range(200)]
    assert {25, 26, 27, 49, 50, 51} == set(counts)
    assert hinted_count(Hints(), 4, 4, draw) == 4
    assert any(text.startswith("4\n") for text in grown(CARDS, "hinted narrow", 20, find_hints("", ["n == 4"])))


def test_zeros_and_repeats_are_tried_where_the_given_inputs_have_none() -> None:
    inputs = ["5\n-5 -26 19 59 26\n", "4\n-1 0 17 -9\n", "1\n3\n"]
    assert {"0"} == {token for text in grown(inputs, "small zero", 9) for token in text.split("\n")[1].split()}
    lists = [text.split("\n")[1].split() for text in grown(inputs, "medium narrow", 40)]
    repeating = sum(len(set(tokens)) < len(tokens) for tokens in lists)
    assert 5 < repeating < len(lists)


def test_limits_hold_through_other_names_and_stand_in_words() -> None:
    statement = "Input\n\nOne line with two integers $l$ and $r$ ($1 \\le l \\le r \\le 900$).\n\nOutput\n"
    maker = InputMaker(["1 7\n", "74 74\n"], statement, 4000)
    form = maker.form(careful=True)
    assert isinstance(form, InputForm)
    assert [(column.low, column.high) for column in form.columns.values()] == [(1, 900), (1, 900)]
    assert bounds_in_order("a number from $1$ to $13$") == (StatedBound(1, 13),)


def test_a_test_with_another_answer_is_kept_a_turn_earlier() -> None:
    kinds = {0: ("small",), 1: ("large",), 2: ("small",), 3: ("small",)}
    answers = {0: b"no", 1: b"no", 2: b"no", 3: b"yes"}
    assert select_tests([0, 1, 2, 3], {}, {}, 3, 3, kinds=kinds, answers=answers) == [0, 1, 3]
    assert select_tests([0, 1, 2, 3], {}, {}, 3, 3, kinds=kinds) == [0, 1, 2]
