"""Nodes that must be reached from one another, rows that say how long they are, and brackets that match."""

import random

import pytest

from curation.programs.test_generation import InputMaker, infer_form
from curation.programs.test_generation.demands import promises
from curation.programs.test_generation.drawn_words import balanced_word
from curation.programs.test_generation.grammar import LengthReference, LineNode, RepeatNode, RowNode
from curation.programs.test_generation.limits import bounds_in_order
from curation.programs.test_generation.promised_outputs import promised_most
from curation.programs.test_generation.reaching import BOTH_WAYS, DIRECTED, reachable, with_path


def made_of(inputs: list[str], statement: str, count: int = 40) -> list[str]:
    return [one.text for one in InputMaker(inputs, statement, 4096).make(count, "7", careful=True)]


LINKS = (
    "Input\nTwo integers $N$ and $M$, $1 \\leq N,M \\leq 50$. $M$ lines follow, each with two integers $u$, $v$,\n"
    "$0 \\leq u,v < N$, meaning that there is a one-way link from $u$ to $v$. {ends}\n\nOutput\nA number.\n"
)
LAST = "The last line contains two integers $s$ and $t$, $0 \\leq s,t < N$. It is possible to reach $t$ from $s$."


def test_the_last_number_is_reached_from_the_one_before_it() -> None:
    samples = ["4 4\n2 1\n0 2\n1 3\n3 2\n0 3\n", "5 4\n4 1\n1 2\n3 0\n2 0\n4 0\n"]
    form = infer_form(samples, LINKS.format(ends=LAST), careful=True)
    assert form is not None
    assert not form.allows("4 4\n2 1\n0 2\n1 3\n3 2\n1 0\n")  # against the links
    made = made_of(samples, LINKS.format(ends=LAST))
    assert len(made) > 20
    for text in made:
        _, *edges, (start, end) = [tuple(map(int, line.split())) for line in text.splitlines()]
        assert end in reachable([(a, b) for a, b in edges], start, DIRECTED)
    free = infer_form(samples, LINKS.format(ends=LAST.partition(". It")[0] + "."), careful=True)
    assert free is not None
    assert (form.relations.speaks_of("reaches"), free.relations.speaks_of("reaches")) == (True, False)


def test_what_is_reached() -> None:
    assert list(reachable([(1, 2), (3, 2)], 1, DIRECTED)) == [1, 2]
    assert list(reachable([(1, 2), (3, 2)], 1, BOTH_WAYS)) == [1, 2, 3]
    for seed in range(20):
        columns = [[*map(str, range(8))], [*"00000000"]]
        with_path(columns, 5, 7, random.Random(seed))
        edges = list(zip(*(map(int, column) for column in columns), strict=True))
        assert 7 in reachable(edges, 5, DIRECTED)


def test_rows_that_say_how_long_they_are() -> None:
    words = (
        "Input\nAn integer $n$ ($1 \\le n \\le 20$). Each of the next $n$ lines holds an integer $k$\n"
        "($0 \\le k \\le 9$) followed by $k$ integers $a_1, \\dots, a_k$ ($1 \\le a_i \\le 50$).\n\nOutput\nA number.\n"
    )
    samples = ["2\n3 4 5 6\n1 9\n", "3\n0\n2 8 8\n1 7\n"]
    form = infer_form(samples, words, careful=True)
    assert form is not None
    row = RowNode(1, 1, LengthReference(1))
    assert form.nodes == (LineNode(0, 1), RepeatNode((row,), LengthReference(0)))
    made = made_of(samples, words)
    assert len(made) > 20
    for text in made:
        count, *rows = text.splitlines()
        assert len(rows) == int(count)
        for line in rows:
            size, *values = map(int, line.split())
            assert len(values) == size <= 9
            assert all(1 <= value <= 50 for value in values)


def test_brackets_match() -> None:
    words = "Input\nOne line with a balanced sequence $s$ ($2\\leq |s|\\leq 10^3$).\n\nOutput\nA number.\n"
    made = made_of(["(()())(()())\n", "()(())()\n"], words)
    assert len(made) > 20
    assert max(map(len, made)) > 500
    for text in made:
        depths = [text[: place + 1].count("(") - text[: place + 1].count(")") for place in range(len(text) - 1)]
        assert min(depths) == 0 == depths[-1]
    assert len(balanced_word("([])", 9, random.Random(3))) == 8


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("To avoid problems, the result is guaranteed to be the same even if a pole is moved by $10^{-7}$ meters.", 1),
        ("The result is guaranteed to be printed.", 0),
        ("You may assume that the leading coefficient $a_n$ of each polynomial is non-zero.", 0),
    ],
)
def test_promises_outside_of_the_input(words: str, count: int) -> None:
    statement = f"{words}\n\nInput\n\nOne real number.\n\nOutput\nA number.\n"
    assert len(promises(statement)) == count
    assert promised_most(statement, []) is None


def test_alternatives_are_no_promise_and_negative_powers_no_limit() -> None:
    assert promises("Input\nThe next $N$ lines contain one alternative each.\n\nOutput\nA.\n") == []
    assert len(promises("Input\nThe edges alternate in colour.\n\nOutput\nA.\n")) == 1
    assert bounds_in_order("$1 \\le x \\le 10^{-7}$ and $1 \\le y \\le 10^7$") == bounds_in_order(
        "$1 \\le y \\le 10^7$"
    )


def test_a_promise_of_formulas_alone_is_kept_by_them() -> None:
    words = (
        "Input\nThe first line is $m_1$ $m_2$, the second is $x_1$ $x_2$. You may assume that $0 < m_i \\leq 50$ and\n"
        "$0 \\leq x_i < m_i$ for each $i$.\n\nOutput\nA number.\n"
    )
    made = made_of(["11 13\n5 2\n", "7 9\n1 8\n"], words)
    assert made
    for text in made:
        m, x = ([*map(int, line.split())] for line in text.splitlines())
        assert all(0 <= b < a <= 50 for a, b in zip(m, x, strict=True))
