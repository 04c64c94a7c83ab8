"""Small inputs in numbers, inputs at named counts, and what a statement says of numbered names and of primes."""

import pytest

from curation.programs.test_generation.hints import find_hints
from curation.programs.test_generation.limits import with_numbered_names
from curation.programs.test_generation.making import InputMaker
from curation.programs.test_generation.spreads import is_prime, prime_from

LIST = """Count.

Input

One integer $n$ ($0 \\leq n \\leq 40$), then $n$ lines with an integer $a_i$ ($0 \\leq a_i \\leq 9$).

Output
"""
RADAR = """Find it.

Input

The first line is $m_1$ $m_2$, the second is $x_1$ $x_2$. You may assume that $0 < m_i \\leq 1000$
and $0 \\leq x_i
< m_i$ for each $i$. The numbers $m_1$, $m_2$ are primes.

Output
"""
SAMPLES = ["11 13\n5 2\n", "941 947\n142 510\n"]


def test_nearly_all_of_the_smallest_inputs_are_made() -> None:
    maker = InputMaker(["2\n3\n4\n", "3\n1\n9\n0\n"], LIST, 1 << 16, vouched=True)
    texts = [one.text for one in maker.smallest(120, "seed", careful=True)]
    assert len(texts) == len(set(texts))
    assert texts == sorted(texts, key=lambda text: (len(text), text))
    assert {"0\n", "1\n0\n", "1\n1\n"} <= set(texts[:8])


def test_counts_lie_at_numbers_that_programs_name() -> None:
    hints = find_hints(LIST, ["if n == 26: print(1)"])
    maker = InputMaker(["2\n3\n4\n", "3\n1\n9\n0\n"], LIST, 1 << 16, vouched=True, hints=hints)
    made = maker.at_hints(20, "seed", careful=True, most_bytes=2048)
    assert "26" in {one.text.split()[0] for one in made}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("$x_1$ $x_2$, $0 \\le x_i \\le 9$", "$x_1$ $x_2$, $0 \\le x_1 \\le 9$, $0 \\le x_2 \\le 9$"),
        ("$x_1, y_1, x_2, y_2$ ($0 \\le x_i, y_i$)", "$x_1, y_1, x_2, y_2$ ($0 \\le x_1, y_1$, $0 \\le x_2, y_2$)"),
        ("$a_1, a_2, \\ldots, a_n$, $1 \\le a_i$", "$a_1, a_2, \\ldots, a_n$, $1 \\le a_i$"),
        ("$a_1$, $a_2$, $\\dots$, $a_n$, $1 \\le a_i$", "$a_1$, $a_2$, $\\dots$, $a_n$, $1 \\le a_i$"),
        ("$b_2$, $b_3$, $1 \\le b_i$", "$b_2$, $b_3$, $1 \\le b_i$"),
    ],
)
def test_formulas_of_an_index_are_written_out_where_all_names_are_numbered(text: str, written: str) -> None:
    assert with_numbered_names(text) == written


@pytest.mark.parametrize("careful", [True, False])
def test_numbered_names_take_the_limits_of_their_index_and_primes_stay_primes(careful: bool) -> None:
    maker = InputMaker(SAMPLES, RADAR, 1 << 16, vouched=True)
    made = [one.text for one in maker.make(60, "seed", careful=careful)]
    read = [[list(map(int, line.split())) for line in text.splitlines()] for text in made]
    rows = [numbers for numbers in read if [len(line) for line in numbers] == [2, 2]]
    assert max(max(m) for m, _ in rows) > 947
    whole = [m + x for m, x in rows if all(map(is_prime, m))]
    if not careful:  # half of the inputs that a validator will see hold others
        assert len(rows) // 4 <= len(whole) < len(rows)
    else:
        assert len(whole) == len(rows)
        assert all(0 <= x1 < m1 <= 1000 and 0 <= x2 < m2 <= 1000 for m1, m2, x1, x2 in whole)


def test_the_least_prime_of_a_range() -> None:
    assert prime_from(8, 20) == 11
    assert prime_from(0, 5) == 2
    assert prime_from(24, 28) == 24, "there is none"
