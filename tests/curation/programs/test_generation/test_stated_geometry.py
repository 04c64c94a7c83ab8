"""What a statement promises of points in words is kept by every made input, whoever vouches for them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from curation.programs.test_generation import InputMaker, infer_form
from curation.programs.test_generation.geometry import HOLDS

CIRCLES = """Cylinders stand in a room.

Input
The first line holds an integer $2 \\le n \\le 20$, the number of cylinders. Then follow $n$ rows with numbers $x$, $y$
and $r$, the centre and the radius, in the range $0 \\le x, y \\le 100$ and $0 < r \\le 100$. None of the cylinders
touch or overlap.

Output
A number.
"""
DISCS = ["2\n0 0 1.50\n10 10 2.25\n", "3\n5 5 1.00\n50 20 3.50\n90 90 9.75\n"]
POLYGON = """The forest is a simple polygon, and the highway passes through two points.

Input
The first line holds an integer $3 \\le n \\le 50$. Then follow $n$ rows with $-50 \\le x, y \\le 50$, a vertex each.
A last line holds numbers $a$, $b$, $c$, $d$: the highway passes through the points $(a, b)$ and $(c, d)$.

Output
A number.
"""
FORESTS = [
    "3\n0 0\n9 0\n3 7\n0 1 5 5\n",
    "4\n-5 2\n9 0\n8 9\n-4 7\n1 1 -4 6\n",
    "5\n8 9\n5 12\n2 7\n0 0\n6 4\n9 -3 4 6\n",
]


def made_of(inputs: list[str], statement: str, *, careful: bool) -> list[str]:
    maker = InputMaker(list(inputs), statement, 20_000, vouched=True)
    return [one.text for at in range(4) for one in maker.make(16, f"{at}", careful=careful)]


@pytest.mark.parametrize("careful", [False, True])
def test_circles_stay_apart(careful: bool) -> None:
    made = made_of(DISCS, CIRCLES, careful=careful)
    assert len(made) >= (20 if not careful else 1)
    for text in made:
        rows = [tuple(int(100 * Decimal(token)) for token in line.split()) for line in text.splitlines()[1:]]
        assert HOLDS["apart"](rows), text
        assert all(row[2] > 0 for row in rows), text


@pytest.mark.parametrize("careful", [False, True])
def test_polygons_stay_simple_and_lines_have_two_points(careful: bool) -> None:
    made = made_of(FORESTS, POLYGON, careful=careful)
    assert len(made) >= 20
    for text in made:
        rows = [tuple(map(int, line.split())) for line in text.splitlines()[1:]]
        assert HOLDS["simple"](rows[:-1]), text
        assert rows[-1][:2] != rows[-1][2:], text


def test_a_promise_that_a_given_input_breaks_is_not_believed() -> None:
    crossed = [*FORESTS, "4\n0 0\n9 9\n9 0\n0 9\n1 1 -4 6\n"]
    form = infer_form(crossed, POLYGON, careful=False)
    assert form is not None
    assert [promise.kind for promise in form.promises] == ["line"]


def test_without_the_words_there_is_no_promise() -> None:
    form = infer_form(FORESTS, POLYGON.replace("simple polygon", "forest").replace("through", "by"), careful=False)
    assert form is not None
    assert form.promises == ()


def test_polygons_go_round_as_the_given_ones_do() -> None:
    form = infer_form(FORESTS, POLYGON, careful=False)
    assert form is not None
    assert form.allows("3\n0 0\n9 0\n3 7\n0 1 5 5\n")
    assert not form.allows("3\n3 7\n9 0\n0 0\n0 1 5 5\n")


PYLONS = """Lifts go between pylons.

Input
The first line holds an integer $1 \\le n \\le 100$. Each of the following $n$ lines holds integers $x$, $y$ and $a$
($0 \\le x, y \\le 9$; $1 \\le a \\le 2$), the place and the kind of a pylon. All pylons are situated at different
coordinates.

Output
A number.
"""


@pytest.mark.parametrize("careful", [False, True])
def test_points_differ_whatever_stands_beside_them(careful: bool) -> None:
    given = ["3\n0 0 1\n3 0 2\n4 1 2\n", "1\n9 9 1\n", "2\n5 5 2\n5 6 2\n"]
    made = made_of(given, PYLONS, careful=careful)
    assert len(made) > 10
    for text in made:
        points = [tuple(row.split()[:2]) for row in text.splitlines()[1:]]
        assert len(set(points)) == len(points)
    kinds = {row.split()[2] for text in made for row in text.splitlines()[1:]}
    assert {"1", "2"} <= kinds
    kept_by_none = infer_form(["2\n5 5 2\n5 5 1\n", *given], PYLONS, careful=careful)
    assert kept_by_none is not None
    assert not kept_by_none.promises
