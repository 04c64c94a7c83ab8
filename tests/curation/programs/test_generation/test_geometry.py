"""Promises on points, decided exactly; rows that break one are mended into rows that keep it."""

from __future__ import annotations

import random

import pytest

from curation.programs.test_generation.geometry import HOLDS, MEND, Point, orientation

SQUARE = [(0, 0), (4, 0), (4, 4), (0, 4)]


@pytest.mark.parametrize(
    ("kind", "points", "holds"),
    [
        ("apart", [(0, 0, 1), (3, 0, 1)], True),
        ("apart", [(0, 0, 1), (2, 0, 1)], False),  # they touch
        ("apart", [(0, 0, 5), (1, 0, 1)], False),  # one in the other
        ("simple", SQUARE, True),
        ("simple", [(0, 0), (4, 4), (4, 0), (0, 4)], False),  # two sides cross
        ("simple", [(0, 0), (4, 0), (4, 4), (2, 0)], False),  # a corner on another side
        ("simple", [(0, 0), (4, 0), (2, 0), (2, 3)], False),  # back along the same side
        ("simple", [(0, 0), (2, 0), (4, 0), (2, 3)], True),  # a straight corner
        ("simple", [(0, 0), (4, 0), (4, 4), (0, 0), (0, 4)], False),
        ("simple", [(0, 0), (4, 0)], False),
        ("convex", SQUARE, True),
        ("convex", SQUARE[::-1], True),
        ("convex", [(0, 0), (2, 0), (4, 0), (2, 3)], False),  # a straight corner
        ("convex", [(0, 0), (4, 0), (1, 1), (0, 4)], False),  # a dent
        ("convex", [(0, 10), (6, -8), (-9, 3), (9, 3), (-6, -8)], False),  # a star goes round twice
        ("scattered", [(0, 0), (1, 2), (2, 1)], True),
        ("scattered", [(0, 0), (1, 2), (5, 1), (2, 4)], False),
        ("scattered", [(0, 0), (0, 0)], False),
        ("different", [(1, 2), (2, 1)], True),
        ("different", [(1, 2), (3, 4), (1, 2)], False),
        ("line", [(1, 2, 2, 1)], True),
        ("line", [(1, 2, 1, 2)], False),
    ],
)
def test_what_holds(kind: str, points: list[Point], holds: bool) -> None:
    assert HOLDS[kind](points) is holds


def slowly_simple(points: list[Point]) -> bool:
    """By the definition: sides have nothing in common but the corner of neighbours. Points are small."""

    def on(a: Point, b: Point, p: Point) -> bool:
        cross = (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])
        return cross == 0 and min(a, b) <= p <= max(a, b)

    def side(a: Point, b: Point, p: Point) -> int:
        cross = (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])
        return (cross > 0) - (cross < 0)

    count = len(points)
    sides = [(points[i], points[(i + 1) % count]) for i in range(count)]
    if count < 3 or len(set(points)) < count:
        return False
    for i in range(count):
        for j in range(i + 1, count):
            (a, b), (c, d) = sides[i], sides[j]
            shared = {a, b} & {c, d} if (j - i) % count in (1, count - 1) else set()
            touching = [p for p in (c, d) if on(a, b, p)] + [p for p in (a, b) if on(c, d, p)]
            crossing = side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0
            if crossing or set(touching) - shared:
                return False
    return True


def test_simple_polygons_are_those_of_the_definition() -> None:
    draw = random.Random(3)
    verdicts = []
    for _ in range(3000):
        points: list[Point] = [(draw.randint(0, 4), draw.randint(0, 4)) for _ in range(draw.randint(3, 6))]
        verdicts.append(HOLDS["simple"](points))
        assert verdicts[-1] is slowly_simple(points), points
    assert 300 < sum(verdicts) < 2700


@pytest.mark.parametrize("kind", ["apart", "simple", "convex", "scattered", "different", "line"])
def test_mended_rows_nearly_always_keep_the_promise(kind: str) -> None:
    draw = random.Random(5)
    width = {"apart": 3, "line": 4}.get(kind, 2)
    kept = 0
    for _ in range(200):
        span = draw.choice((9, 40, 1000))

        def point(span: int = span) -> Point:
            return tuple(draw.randint(0, span) for _ in range(width))

        rows = [point() for _ in range(draw.randint(3, 7))]
        try:
            mended = MEND[kind](rows, point, (1, 1), draw)
        except ValueError:
            continue
        assert len(mended) == len(rows)
        assert all(0 <= value <= span for one in mended for value in one)
        kept += HOLDS[kind](mended)
    assert kept >= 120


def test_the_way_round() -> None:
    assert [orientation(SQUARE), orientation(SQUARE[::-1]), orientation([(0, 0), (1, 1), (2, 2)])] == [1, -1, 0]
