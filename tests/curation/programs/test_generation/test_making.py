"""Tests that are made: limits read, shapes seen, inputs changed, generators found, and which tests are kept."""

import pytest

from curation.programs.test_generation import (
    GeneratorPrograms,
    StatedBound,
    mutate_input,
    programs_in,
    select_tests,
    stated_bounds,
    validators_in,
)
from curation.programs.test_generation.shapes import keeps_counts, read_lines, shape_of
from curation.questions.test_programs import COUNT
from curation.questions.test_programs import PROMPT as TESTING
from curation.records import Domain, PromptRequest

LIST = ["3\n5 1 4\n", "5\n2 2 9 7 1\n", "1\n6\n"]
TABLE = ["2 3\nabc\nxyz\n", "3 2\nab\nba\nbb\n"]
EDGES = ["4 2\n1 2\n3 4\n", "3 3\n1 2\n2 3\n1 3\n", "2 1\n1 2\n"]


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        (r"$1 \le n \le 10^5$", [StatedBound(1, 100_000)]),
        (r"$1 \leq a_i, b_i \leq 2 \cdot 10^{9}$", [StatedBound(1, 2_000_000_000)]),
        ("1 ≤ N ≤ 200,000 and 0 < x < 10", [StatedBound(1, 9), StatedBound(1, 200_000)]),
        ("-1000 <= v <= 1000", [StatedBound(-1000, 1000)]),
        ("$|x|, |y| \\leq 10^9$", [StatedBound(-(10**9), 10**9)]),
        ("$(1 \\leq n \\leq 1000, 0 \\leq p \\leq 1)$", [StatedBound(0, 1), StatedBound(1, 1000)]),
        ("$1 \\le n \\le 200{,}000$ and $1 \\le m \\le 30\\,000$", [StatedBound(1, 30_000), StatedBound(1, 200_000)]),
        ("an integer between 2 and 50", []),  # words are not read
        ("no limits, only 3 words", []),
    ],
)
def test_limits_of_a_statement(text: str, bounds: list[StatedBound]) -> None:
    assert list(stated_bounds(text)) == bounds


def test_numbers_that_count_are_found() -> None:
    read = [lines for text in LIST if (lines := read_lines(text)) is not None]
    assert [(count.place, count.kind, count.of) for count in shape_of(read).counts] == [((0, 0), "tokens", 1)]
    edges = [lines for text in EDGES if (lines := read_lines(text)) is not None]
    assert [(count.place, count.kind, count.of) for count in shape_of(edges).counts] == [((0, 1), "lines", 1)]


def test_an_input_that_was_cut_breaks_its_counts() -> None:
    assert keeps_counts("2\n8 9\n", LIST)
    assert not keeps_counts("2\n8\n", LIST)
    assert not keeps_counts("2\n8 9\n", []), "nothing is known"
    assert not keeps_counts("8  9\n", LIST), "it cannot be read"


def test_changed_inputs_keep_the_form_and_the_limits() -> None:
    made = mutate_input(LIST, [StatedBound(1, 50), StatedBound(1, 100)], 40, "seed")
    assert len(set(made)) == 40
    assert not set(made) & set(LIST)
    sizes = set()
    for text in made:
        head, body = text.splitlines()
        values = [int(word) for word in body.split()]
        assert int(head) == len(values)
        assert all(1 <= value <= 50 for value in values)
        sizes.add(len(values))
    assert len(sizes) > 3


def test_lines_that_are_counted_are_counted_again() -> None:
    for text in mutate_input(EDGES, [], 30, "seed"):
        head, *rest = text.splitlines()
        assert int(head.split()[1]) == len(rest)


def test_words_keep_their_letters_and_their_length() -> None:
    for text in mutate_input(TABLE, [], 20, "seed"):
        assert set(text) <= set("0123456789 \nabcxyz")


def test_the_same_seed_makes_the_same_inputs_and_another_one_others() -> None:
    assert mutate_input(LIST, [], 5, "a") == mutate_input(LIST, [], 5, "a") != mutate_input(LIST, [], 5, "b")


def test_inputs_whose_form_cannot_be_read_are_left_alone() -> None:
    assert mutate_input(["a  b\n\tc\n"], [], 5, "seed") == []
    assert mutate_input([""], [], 5, "seed") == []


def test_tests_that_catch_something_new_come_first_and_others_fill_up() -> None:
    failing = {1: frozenset({7}), 2: frozenset({7, 8}), 4: frozenset({9})}
    assert select_tests([0, 1, 2, 3, 4], failing, {9: 3}, 1, 1) == [2]  # it catches two, and 9 is caught often enough
    assert select_tests([0, 1, 2, 3, 4], failing, {}, 10, 0) == [1, 2, 4]
    assert select_tests([0, 1, 2, 3, 4], failing, {}, 10, 4) == [0, 1, 2, 4]
    assert select_tests([0, 3], failing, {}, 0, 10) == []


def test_a_wrong_solution_is_caught_by_more_than_one_test_and_others_are_of_every_kind() -> None:
    failing = dict.fromkeys(range(6), frozenset({7}))
    assert len(select_tests(list(range(6)), failing, {}, 10, 0)) == 3
    assert select_tests(
        [0, 1, 2, 3], {}, {}, 2, 2, kinds={0: ("small",), 1: ("small",), 2: ("small",), 3: ("large",)}
    ) == [
        0,
        3,
    ]


def test_programs_of_a_response() -> None:
    said = "<think>```python\nno\n```</think>\n```python\nprint(1)\n```\nand\n```py\nassert input()\n```\n"
    assert programs_in(said) == GeneratorPrograms("print(1)\n", "assert input()\n")
    assert programs_in("```python\nprint(1)\n```") == GeneratorPrograms("print(1)\n", None)
    assert programs_in("no code") is None
    (validator,) = validators_in([said, said, "no code"])
    assert (validator.sources, validator.accepts) == ({"validator1.py": "assert input()\n"}, 0)
    assert programs_in("<think>```python\nprint(1)\n```") is None  # a draft
    assert programs_in("- One:\n  ```python\n  print(1)\n  ```") == GeneratorPrograms("print(1)\n", None)


def test_the_prompt_holds_the_statement_and_the_count() -> None:
    asked = PromptRequest("p", "Add {count} numbers.", Domain.CODE, "en", {COUNT: "5"})
    text = TESTING.messages(asked)[-1]["content"]
    assert "Add {count} numbers." in text
    assert "1 <= k <= 5" in text
