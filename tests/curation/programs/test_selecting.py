"""Inputs chosen by what a trusted program prints for them, and the made tests that are kept."""

from collections.abc import Mapping, Sequence

import polars as pl

from curation.programs.selecting import OutputClasses, SoundTest, output_kind, select_tests


def test_kinds_of_outputs_name_words_and_small_numbers_and_sizes_of_others() -> None:
    assert output_kind("YES\n1 4521\n") == "yes 1 4d 2l"
    assert output_kind("no\n") == output_kind("NO\n") != output_kind("YES\n")
    assert output_kind("-2\n") != output_kind("2\n")
    assert output_kind("4521\n") == output_kind("7777\n") != output_kind("77777\n")
    assert output_kind("0.5\n") == "1d 1l"
    assert output_kind("") == "0l"


def test_rare_answers_are_chosen_first_and_kept_to_be_changed() -> None:
    classes = OutputClasses(max_rare=2)
    inputs = [str(number) for number in range(16)]
    kinds = [*[output_kind("NO\n")] * 14, output_kind("YES\n"), None]
    assert classes.choose(inputs, kinds, 3) == [14, 0, 1]
    assert classes.rare[0] == "14"
    assert classes.choose(inputs, kinds, 1) == [14]
    assert classes.choose(inputs, [None] * 16, 3) == []
    assert len(classes.rare) <= 2


def selected(
    failing: Mapping[int, Sequence[int]],
    room: int,
    fill: int,
    caught: Mapping[int, int] = {},
    shapes: Mapping[int, str] = {},
    answers: Mapping[int, bytes] = {},
) -> list[int]:
    """The kept ones of these tests: which solutions fail on them, with their shapes and answers."""

    def sound(at: int, fails: Sequence[int]) -> SoundTest:
        shape, answer = shapes.get(at, "any"), answers.get(at, b"same")
        return SoundTest(at, b"", answer, "", shape, 1, frozenset(fails), frozenset(), pl.DataFrame())

    return [test.index for test in select_tests([sound(*one) for one in failing.items()], caught, room, fill)]


def test_tests_that_catch_something_new_come_first_and_others_fill_up() -> None:
    failing: dict[int, list[int]] = {0: [], 1: [7], 2: [7, 8], 3: [], 4: [9]}
    assert selected(failing, 1, 1, caught={9: 3}) == [2]  # it catches two, and 9 is caught often enough
    assert selected(failing, 10, 0) == [1, 2, 4]
    assert selected(failing, 10, 4) == [0, 1, 2, 4]
    assert selected({0: [], 3: []}, 0, 10) == []


NOTHING: dict[int, list[int]] = {at: [] for at in range(4)}


def test_a_wrong_solution_is_caught_by_more_than_one_test_and_others_are_of_every_kind() -> None:
    assert len(selected({at: [7] for at in range(6)}, 10, 0)) == 3
    assert selected(NOTHING, 2, 2, shapes={0: "small", 1: "small", 2: "small", 3: "large"}) == [0, 3]


def test_a_test_with_another_answer_is_kept_a_turn_earlier() -> None:
    shapes = {0: "small", 1: "large", 2: "small", 3: "small"}
    assert selected(NOTHING, 3, 3, shapes=shapes, answers={3: b"yes"}) == [0, 1, 3]
    assert selected(NOTHING, 3, 3, shapes=shapes) == [0, 1, 2]
    assert selected(NOTHING, 3, 3, shapes=dict.fromkeys(range(4), "designed")) == [0, 1, 2]
