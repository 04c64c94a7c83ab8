"""Inputs chosen by what a trusted program prints for them."""

from __future__ import annotations

from curation.programs.test_generation import OutputClasses, output_kind


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
    outputs: list[str | None] = ["NO\n"] * 14 + ["YES\n", None]
    assert classes.choose(inputs, [None if one is None else output_kind(one) for one in outputs], 3) == [14, 0, 1]
    assert classes.rare[0] == "14"
    assert classes.choose(inputs, [None if one is None else output_kind(one) for one in outputs], 1) == [14]
    assert classes.choose(inputs, [None] * 16, 3) == []
    assert len(classes.rare) <= 2
