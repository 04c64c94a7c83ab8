"""The form of inputs found from a few of them, and new inputs grown from it."""

import random
from collections.abc import Callable

import pytest

from curation.programs.test_generation.columns import columns_in, pairs_in
from curation.programs.test_generation.demands import promises
from curation.programs.test_generation.forms import infer_form, inputs_of_another_form
from curation.programs.test_generation.grammar import (
    ArrayNode,
    LengthReference,
    LineNode,
    LinesNode,
    Node,
    RepeatNode,
    infer_grammar,
    read_node,
)
from curation.programs.test_generation.growing import grow_shapes
from curation.programs.test_generation.hints import Hints
from curation.programs.test_generation.limits import StatedBound, bounds_in_order
from curation.programs.test_generation.making import new_inputs
from curation.programs.test_generation.profiles import FIRST_SHAPES, PROFILES, shape_name
from curation.programs.test_generation.relations import read_input
from curation.programs.test_generation.shapes import Line, read_lines
from curation.programs.test_generation.spreads import ValueSpread, draw_word, prime_below, special_number

LIST = ["3\n5 1 4\n", "2\n7 7\n", "1\n9\n"]
TREE = ["4\n1 2\n1 3\n3 4\n", "3\n2 1\n2 3\n", "5\n1 2\n2 3\n3 4\n4 5\n"]
GRAPH = ["3 2\n1 2 9\n2 3 4\n", "4 3\n1 4 2\n2 3 7\n3 4 1\n"]
GRID = ["2 3\n#..\n.#.\n", "3 4\n....\n####\n.#.#\n"]
CASES = ["2\n3\n1 2 3\n1\n5\n", "1\n4\n2 2 2 2\n"]


def grow(inputs: list[str], statement: str, count: int, most_bytes: int, *, careful: bool = False) -> list[str]:
    form = infer_form(inputs, statement, careful=careful)
    profiles = [*FIRST_SHAPES, *random.Random(1).choices(PROFILES, k=6 * count)]
    shapes = [shape_name(profile) for profile in profiles]
    made = [] if form is None else grow_shapes(form, set(inputs), shapes, "seed", most_bytes)
    return list(dict.fromkeys(made))[:count]


def lines_of(*texts: str) -> list[list[Line]]:
    return [lines for text in texts if (lines := read_lines(text)) is not None]


@pytest.mark.parametrize(
    ("inputs", "form"),
    [
        (["4 5\n", "6 7\n"], (LineNode(0, 2),)),
        (LIST, (LineNode(0, 1), ArrayNode(1, LengthReference(0)))),
        (TREE, (LineNode(0, 1), LinesNode(1, LengthReference(0, -1), 2))),
        (GRAPH, (LineNode(0, 2), LinesNode(2, LengthReference(1), 3))),
        (GRID, (LineNode(0, 2), LinesNode(2, LengthReference(0), 1))),
        (
            ["2 4\n1 2 3 4\n5 6 7 8\n", "1 5\n1 2 3 4 5\n"],
            (LineNode(0, 2), LinesNode(2, LengthReference(0), LengthReference(1))),
        ),
        (CASES, (LineNode(0, 1), RepeatNode((LineNode(1, 1), ArrayNode(2, LengthReference(1))), LengthReference(0)))),
    ],
)
def test_the_form_that_all_inputs_share_is_found(inputs: list[str], form: tuple[Node, ...]) -> None:
    assert infer_grammar(lines_of(*inputs)) == form


def test_inputs_of_no_common_form_have_none() -> None:
    assert infer_grammar([]) is None
    assert infer_grammar([[["1"]], []]) is None
    assert grow(["1  2\n"], "", 4, 1000) == []


@pytest.mark.parametrize("inputs", [LIST, TREE, GRAPH, GRID, CASES])
def test_grown_inputs_have_the_form_are_new_and_the_same_again(inputs: list[str]) -> None:
    nodes = infer_grammar(lines_of(*inputs))
    assert nodes is not None
    made = grow(inputs, "", 12, 4000)
    assert len(made) >= 8
    assert made == grow(inputs, "", 12, 4000)
    assert not set(made) & set(inputs)
    for lines in lines_of(*made):
        at, env = 0, {}
        for node in nodes:
            after = read_node(node, lines, at, env, None)
            assert after is not None
            at = after
        assert at == len(lines)


def test_sizes_go_from_the_least_to_the_greatest_stated_that_fits() -> None:
    text = "One line with $n$ ($1 \\le n \\le 1000$), then $n$ numbers $0 \\le a_i \\le 20$."
    assert bounds_in_order(text) == (StatedBound(1, 1000), StatedBound(0, 20))
    counts = [int(made.split()[0]) for made in grow(LIST, text, 24, 100_000)]
    assert max(counts) == 1000
    assert min(counts) == 1
    values = [int(word) for made in grow(LIST, text, 12, 100_000) for word in made.split()[1:]]
    assert (min(values), max(values)) == (0, 20)
    assert all(len(made) <= 300 for made in grow(LIST, text, 12, 300))


def test_a_limit_that_holds_for_two_names_counts_twice() -> None:
    assert bounds_in_order("$1 \\le n, m \\le 9$ and $0 \\le k \\le 5$") == (
        StatedBound(1, 9),
        StatedBound(1, 9),
        StatedBound(0, 5),
    )


def test_limits_with_one_end_and_limits_of_lengths() -> None:
    text = "two positive integers $N \\leq 5\\,000$ and $M \\leq 10$, then $1 \\le k \\le 7$, a sum $s \\le 99$ of both"
    assert bounds_in_order(text)[:3] == (StatedBound(1, 5000), StatedBound(1, 10), StatedBound(1, 7))
    words = ["abc\n", "cacab\n"]
    made = grow(words, "It has at least $1$ and at most $1\\,000$ letters.", 12, 5000)
    assert max(map(len, made)) > 900
    assert min(map(len, made)) <= 3


def test_edges_of_trees_stay_trees_and_ends_stay_in_range() -> None:
    for text in grow(TREE, "$2 \\le n \\le 50$", 15, 2000):
        rows = [tuple(map(int, line.split())) for line in text.splitlines()]
        size = rows[0][0]
        reached, edges = {1}, rows[1:]
        for _ in range(size):
            reached |= {b for a, b in edges if a in reached} | {a for a, b in edges if b in reached}
        assert reached == set(range(1, size + 1))
    for text in grow(GRAPH, "", 15, 2000):
        (size, _), *rows = (tuple(map(int, line.split())) for line in text.splitlines())
        assert all(1 <= a < b <= size for a, b, _ in rows)


def test_permutations_orders_and_word_lengths_are_seen() -> None:
    nodes = infer_grammar(lines_of("3\n2 3 1\n", "4\n4 1 2 3\n"))
    assert nodes is not None
    readings = [read_input(nodes, lines) for lines in lines_of("3\n2 3 1\n", "4\n4 1 2 3\n")]
    seen = [block for reading in readings if reading is not None for block in reading.seen]
    assert columns_in(nodes, seen, [])[1].base == 1
    assert pairs_in(nodes, seen) == {}
    for text in grow(["3\n1 5 9\n", "4\n2 3 7 8\n"], "", 10, 500):
        values = [int(word) for word in text.split()[1:]]
        assert values == sorted(values)
    for text in grow(GRID, "", 10, 500):
        (_, width), *rows = (line.split() for line in text.splitlines())
        assert {len(row[0]) for row in rows} <= {int(width)}
        assert set("".join(row[0] for row in rows)) <= {"#", "."}


def test_values_may_lie_far_apart() -> None:
    made = grow(["2\n7 1000000000000000000\n", "3\n-1000000000000000000 0 5\n"], "", 10, 500)
    assert len(made) == 10


def test_new_inputs_are_grown_and_changed_ones() -> None:
    made = new_inputs(LIST, "$1 \\le n \\le 100$", 12, "seed", 5000)
    assert len(made) == len(set(made)) >= 10
    assert max(int(text.split()[0]) for text in made) >= 99


@pytest.mark.parametrize(
    ("inputs", "statement", "rule"),
    [
        (["5 2\n", "9 9\n", "3 1\n"], "$1 \\le k \\le n$", lambda rows: rows[0][1] <= rows[0][0]),
        (
            ["3\n2 3 1\n", "4\n2 1 1 2\n"],
            "numbers $a_i \\ne i$ from 1 to $n$",
            lambda rows: all(a != i for i, a in enumerate(rows[1], 1)),
        ),
        (
            ["3\n1 5 9\n", "4\n2 3 7 8\n", "2\n5 6\n"],
            "in increasing order",
            lambda rows: all(a < b for a, b in zip(rows[1], rows[1][1:], strict=False)),
        ),
        (
            ["4 4\n1 2\n2 3\n3 4\n4 1\n", "3 2\n1 2\n1 3\n", "3 3\n1 2\n3 1\n3 2\n"],
            "a connected graph, no two roads join the same towns",
            lambda rows: connected(rows[0][0], rows[1:]) and len({frozenset(r) for r in rows[1:]}) == len(rows) - 1,
        ),
        (["7\n", "15\n"], "$n$ is odd, $1 \\le n \\le 99$", lambda rows: rows[0][0] % 2 == 1),
    ],
)
def test_careful_inputs_keep_the_relations_of_the_given_ones(
    inputs: list[str], statement: str, rule: Callable[[list[list[int]]], bool]
) -> None:
    made = grow(inputs, statement, 20, 2000, careful=True)
    assert len(made) >= 3
    for text in [*inputs, *made]:
        assert rule([[int(word) for word in line.split()] for line in text.splitlines()]), text


def connected(nodes: int, edges: list[list[int]]) -> bool:
    reached = {1}
    for _ in range(nodes):
        reached |= {b for edge in edges for b in edge if reached & set(edge)}
    return reached == set(range(1, nodes + 1))


def test_careful_inputs_keep_words_and_ranges_and_are_none_where_a_promise_cannot_be_kept() -> None:
    words = ["2\nAnna Bob\n", "3\nTom Anna Zoe\n"]
    made = new_inputs(words, "", 12, "seed", 500, careful=True)
    assert made
    assert all(word[0].isupper() and word[1:].islower() for text in made for word in text.split()[1:])
    assert all(int(text.split()[0]) <= 3 for text in made)  # no limit was told
    promise = "Input\n\nThe ships, one a line. It is guaranteed that ships never touch.\n\nOutput\n\nA number."
    assert promises(promise) == ["It is guaranteed that ships never touch."]
    assert new_inputs(LIST, promise, 12, "seed", 500, careful=True) == []
    assert new_inputs(LIST, promise, 12, "seed", 500) != []
    assert new_inputs(["say hello to Bob\n", "hello\n"], "", 12, "seed", 500, careful=True) == []


def test_a_careful_input_has_every_form_that_reads_the_given_ones_as_well() -> None:
    given = ["2 2\n1 2\n3 4\n", "3 3\n1 2 3\n4 5 6\n7 8 9\n"]  # rows of which number, lines of which?
    form = infer_form(given, "", careful=True)
    assert form is not None
    assert form.others
    assert form.allows("2 2\n5 6\n7 8\n")
    assert not form.allows("1 2\n5 6\n")


def test_what_is_chosen_for_a_column_holds_for_the_whole_input() -> None:
    draw = random.Random(5)
    for mode in ("narrow", "few", "skewed"):
        spread = ValueSpread(mode, draw, Hints())
        values = [spread.one(3, 1, 10**9) for _ in range(400)]
        assert len(set(values)) <= (13 if mode == "narrow" else 3)
        assert all(1 <= value <= 10**9 for value in values)
    skewed = ValueSpread("skewed", draw, Hints())
    values = [skewed.one(0, 1, 1000) for _ in range(400)]
    assert max(map(values.count, set(values))) >= 300


@pytest.mark.parametrize("count", [0, 1, 2, 7, 50])
def test_patterns_stay_in_the_range_and_words_among_those_given(count: int) -> None:
    for seed in range(40):
        spread = ValueSpread("patterned", random.Random(seed), Hints())
        values = spread.many(0, -3, 9, count)
        assert len(values) == count
        assert all(-3 <= value <= 9 for value in values)
        assert len(words := spread.words(["a", "b"], count)) == count
        assert set(words) <= {"a", "b"}
        assert set(word := draw_word("xy", count, random.Random(seed))) <= {"x", "y"}
        assert len(word) == count


def test_many_tiny_cases_and_one_large_case_where_inputs_hold_cases() -> None:
    text = "One line with $t$ ($1 \\le t \\le 500$). Each has $n$ ($1 \\le n \\le 1000$) and $0 \\le a_i \\le 9$."
    form = infer_form(CASES, text, careful=False)
    assert form is not None
    (many,) = grow_shapes(form, set(CASES), ["many narrow"], "seed", 100_000)
    (one,) = grow_shapes(form, set(CASES), ["one whole"], "seed", 100_000)
    assert int(many.split()[0]) >= 499
    assert max(map(int, many.splitlines()[1::2])) <= 3
    assert one.split()[0] == "1"
    assert int(one.split()[1]) >= 999
    flat = infer_form(LIST, "", careful=False)
    assert flat is not None
    assert not list(grow_shapes(flat, set(LIST), ["many narrow", "one whole"], "seed", 1000))


def test_inputs_that_were_cut_lack_the_form_of_the_others() -> None:
    inputs = [f"{n} 2\n" + "".join(f"{i} {n + i}\n" for i in range(n)) for n in range(1, 12)]
    assert inputs_of_another_form(inputs) == frozenset()
    cut = [*inputs[:4], inputs[4][:-6], *inputs[5:], "3 2\n0"]
    assert inputs_of_another_form(cut) == {4, 11}
    assert inputs_of_another_form(cut[4:8]) == frozenset()  # too few share one
    assert (
        inputs_of_another_form(["a b\n", "one\n\ntwo\n", "3\n1 1 1\n", "7 7\n8\n", "2\n9\n", "x y z\n1\n"])
        == frozenset()
    )


def test_special_numbers_are_of_many_kinds_and_in_their_range() -> None:
    numbers = {special_number(1, 10**18, random.Random(seed)) for seed in range(400)}
    assert all(1 <= number <= 10**18 for number in numbers)
    assert any(number > 10**9 and number.bit_count() == 2 for number in numbers)
    assert any(number > 10**6 and round(number**0.5) ** 2 == number for number in numbers)
    assert {special_number(5, 7, random.Random(seed)) for seed in range(60)} == {5, 6, 7}
    assert [prime_below(number) for number in (2, 3, 4, 100, 561, 10**12)] == [2, 3, 3, 97, 557, 999999999989]
