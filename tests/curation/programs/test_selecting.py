"""Inputs chosen by what a trusted program prints for them, and the made tests that are kept."""

from __future__ import annotations

from curation.programs.selecting import OutputClasses, output_kind, select_tests


def test_kinds_of_outputs_name_words_and_small_numbers_and_sizes_of_others() -> None:
    assert output_kind("YES\n1 4521\n") == "yes 1 4d 2l"
    assert output_kind("no\n") == output_kind("NO\n") != output_kind("YES\n")
    assert output_kind("-2\n") != output_kind("2\n")
    assert output_kind("4521\n") == output_kind("7777\n") != output_kind("77777\n")
    assert output_kind("0.5\n") == "1d 1l"
    assert output_kind("") == "0l"


def test_rare_answers_are_chosen_first_and_kept_to_be_changed() -> None:
    classes = OutputClasses(most_rare=2)
    inputs = [str(number) for number in range(16)]
    outputs: list[str | None] = [*["NO\n"] * 14, "YES\n", None]
    assert classes.choose(inputs, [None if one is None else output_kind(one) for one in outputs], 3) == [14, 0, 1]
    assert classes.rare[0] == "14"
    assert classes.choose(inputs, [None if one is None else output_kind(one) for one in outputs], 1) == [14]
    assert classes.choose(inputs, [None] * 16, 3) == []
    assert len(classes.rare) <= 2


def test_tests_that_catch_something_new_come_first_and_others_fill_up() -> None:
    failing = {1: frozenset({7}), 2: frozenset({7, 8}), 4: frozenset({9})}
    assert select_tests([0, 1, 2, 3, 4], failing, {9: 3}, 1, 1) == [2]  # it catches two, and 9 is caught often enough
    assert select_tests([0, 1, 2, 3, 4], failing, {}, 10, 0) == [1, 2, 4]
    assert select_tests([0, 1, 2, 3, 4], failing, {}, 10, 4) == [0, 1, 2, 4]
    assert select_tests([0, 3], failing, {}, 0, 10) == []


def test_a_wrong_solution_is_caught_by_more_than_one_test_and_others_are_of_every_kind() -> None:
    failing = dict.fromkeys(range(6), frozenset({7}))
    assert len(select_tests(list(range(6)), failing, {}, 10, 0)) == 3
    kinds = {0: "small", 1: "small", 2: "small", 3: "large"}
    assert select_tests([0, 1, 2, 3], {}, {}, 2, 2, kinds=kinds) == [0, 3]


def test_a_test_with_another_answer_is_kept_a_turn_earlier() -> None:
    kinds = {0: "small", 1: "large", 2: "small", 3: "small"}
    answers = {0: b"no", 1: b"no", 2: b"no", 3: b"yes"}
    assert select_tests([0, 1, 2, 3], {}, {}, 3, 3, kinds=kinds, answers=answers) == [0, 1, 3]
    assert select_tests([0, 1, 2, 3], {}, {}, 3, 3, kinds=kinds) == [0, 1, 2]
