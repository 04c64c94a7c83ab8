"""Points and circles in the plane: whether they keep a promise, and how rows that do not are mended.

A promise is one of `HOLDS`: circles that lie ``apart``, polygons that are ``simple`` or ``convex``, ``scattered``
points of which no three lie on a line, ``different`` points, a ``line`` through two points that differ. Points are
whole numbers, so that all is decided exactly.

Invariants: pure but for the random numbers drawn; what there is no time to look at (`_WORK`) is said not to hold.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cmp_to_key

Point = tuple[int, ...]
DrawPoint = Callable[[], Point]
"""Returns a further point, or circle, of the range that is asked for."""
Radius = tuple[int, int]
"""The smallest radius that circles may have, and the step between two."""
_WORK = 400_000
"""Pairs that are compared at most."""
_TRIES = 24
MANY = 400
"""Polygons of more corners go along the ground and back above it: whether they are simple is told in time."""


def _cross(a: Point, b: Point, c: Point) -> int:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def orientation(points: Sequence[Point]) -> int:
    """Return 1 where a polygon goes round against the clock, -1 with it, 0 where it has no area."""
    area = sum(a[0] * b[1] - a[1] * b[0] for a, b in zip(points, [*points[1:], *points[:1]], strict=True))
    return (area > 0) - (area < 0)


def _are_apart(circles: Sequence[Point]) -> bool:
    if len(circles) ** 2 > _WORK:
        return False
    return all(_clear(circles[:at], circle) for at, circle in enumerate(circles))


def _clear(others: Sequence[Point], circle: Point) -> bool:
    x, y, r = circle
    return r >= 0 and all((x - a) ** 2 + (y - b) ** 2 > (r + s) ** 2 for a, b, s in others)


def _is_simple(points: Sequence[Point]) -> bool:
    count = len(points)
    if count < 3 or len(set(points)) < count:
        return False
    ends = [(points[at], points[(at + 1) % count]) for at in range(count)]
    sides = sorted((min(pair), max(pair), at) for at, pair in enumerate(ends))
    work, active = 0, list[tuple[Point, Point, int]]()
    for a, b, at in sides:
        active = [side for side in active if side[1][0] >= a[0]]
        work += len(active)
        if work > _WORK:
            return False
        for c, d, other in active:
            beside = (at - other) % count in (1, count - 1)
            if _overlap((a, b), (c, d)) if beside else _meet((a, b), (c, d)):
                return False
        active.append((a, b, at))
    return True


def _meet(one: tuple[Point, Point], other: tuple[Point, Point]) -> bool:
    """Return whether two sides have a point in common."""
    (a, b), (c, d) = one, other
    if max(a[1], b[1]) < min(c[1], d[1]) or max(c[1], d[1]) < min(a[1], b[1]) or max(a[0], c[0]) > min(b[0], d[0]):
        return False
    first, second = _cross(a, b, c), _cross(a, b, d)
    third, fourth = _cross(c, d, a), _cross(c, d, b)
    return not (first * second > 0 or third * fourth > 0)


def _overlap(one: tuple[Point, Point], other: tuple[Point, Point]) -> bool:
    """Return whether two sides with a common corner have more than that in common."""
    (a, b), (c, d) = one, other
    corner = a if a in (c, d) else b
    p, q = (b if corner == a else a), (d if corner == c else c)
    if _cross(corner, p, q) != 0:
        return False
    return (p[0] - corner[0]) * (q[0] - corner[0]) + (p[1] - corner[1]) * (q[1] - corner[1]) > 0


def _is_convex(points: Sequence[Point]) -> bool:
    count = len(points)
    crosses = [_cross(points[at - 2], points[at - 1], points[at]) for at in range(count)]
    turns = {(cross > 0) - (cross < 0) for cross in crosses}
    if count < 3 or len(turns) != 1 or 0 in turns:
        return False
    lower = sum(points[at - 1] > points[at - 2] and points[at - 1] > points[at] for at in range(count))
    return lower == 1  # goes round once


def _are_scattered(points: Sequence[Point]) -> bool:
    if len(points) ** 2 > _WORK:
        return False
    return all(_new_directions(points[:at], point) for at, point in enumerate(points))


def _new_directions(others: Sequence[Point], point: Point) -> bool:
    """Return whether a point lies on no line through two others, and on none of them."""
    directions = set()
    for other in others:
        dx, dy = other[0] - point[0], other[1] - point[1]
        common = math.gcd(dx, dy)
        if not common:
            return False
        directions.add((dx // common, dy // common) if (dx, dy) > (0, 0) else (-dx // common, -dy // common))
    return len(directions) == len(others)


def _mend_apart(circles: Sequence[Point], drawn: DrawPoint, radius: Radius, draw: random.Random) -> list[Point]:
    """Return circles that were moved anywhere, or made smaller until they only nearly touch."""
    if len(circles) ** 2 > _WORK:
        raise ValueError("too many circles")
    least, step = radius
    clear: list[Point] = []
    for circle in circles:
        for _ in range(_TRIES):
            if _clear(clear, circle):
                break
            x, y, r = circle
            if draw.random() < 0.5:
                room = min(math.isqrt((x - a) ** 2 + (y - b) ** 2) - s for a, b, s in clear)
                circle = (x, y, max(least, min(r, (room - 1) // step * step)))
            else:
                circle = (*drawn()[:2], r)
        else:
            raise ValueError("no room for a circle")
        clear.append(circle)
    return clear


def _different(points: Sequence[Point], drawn: DrawPoint, new: Callable[[list[Point], Point], bool]) -> list[Point]:
    """Return the points, those drawn anew that are not ``new`` beside the ones before them, or among them."""
    kept: list[Point] = []
    known: set[Point] = set()
    for point in points:
        for _ in range(_TRIES):
            if point not in known and new(kept, point):
                break
            point = drawn()
        else:
            raise ValueError("no room for a point")
        kept.append(point)
        known.add(point)
    return kept


def _mend_different(points: Sequence[Point], drawn: DrawPoint, radius: Radius, draw: random.Random) -> list[Point]:
    del radius, draw
    return _different(points, drawn, lambda *_: True)


def _mend_scattered(points: Sequence[Point], drawn: DrawPoint, radius: Radius, draw: random.Random) -> list[Point]:
    del radius, draw
    if len(points) ** 2 > _WORK:
        raise ValueError("too many points")
    return _different(points, drawn, _new_directions)


def _mend_simple(points: Sequence[Point], drawn: DrawPoint, radius: Radius, draw: random.Random) -> list[Point]:
    """Return the points in the order around one in their midst, or along the ground and back above it."""
    points = _mend_different(points, drawn, radius, draw)
    count = len(points)
    if count > MANY or draw.random() < 0.5:
        low, *inner, high = sorted(points)
        below = [point for point in inner if _cross(low, high, point) <= 0]
        return [low, *below, high, *(point for point in inner[::-1] if _cross(low, high, point) > 0)]
    middle = sum(x for x, _ in points), sum(y for _, y in points)
    around = [((count * x - middle[0], count * y - middle[1]), (x, y)) for x, y in points]

    def compare(one: tuple[Point, Point], other: tuple[Point, Point]) -> int:
        halves = [(y, x) < (0, 0) for (x, y), _ in (one, other)]
        (a, b), (c, d) = one[0], other[0]
        return halves[0] - halves[1] or b * c - a * d or (a * a + b * b) - (c * c + d * d)

    return [point for _, point in sorted(around, key=cmp_to_key(compare))]


def _mend_convex(points: Sequence[Point], drawn: DrawPoint, radius: Radius, draw: random.Random) -> list[Point]:
    """Return a convex polygon whose sides are the differences of sorted coordinates (Valtr 1995)."""
    del drawn, radius
    ways = []
    for place in (0, 1):
        values = sorted(point[place] for point in points)
        up, down = values[0], values[0]
        parts = []
        for value in values[1:-1]:
            if draw.random() < 0.5:
                parts.append(value - up)
                up = value
            else:
                parts.append(down - value)
                down = value
        ways.append([*parts, values[-1] - up, down - values[-1]])
        if len(values) < 3:
            raise ValueError("no polygon")
    draw.shuffle(ways[1])
    sides = sorted(zip(*ways, strict=True), key=lambda side: math.atan2(side[1], side[0]))
    corners, x, y = [], 0, 0
    for dx, dy in sides:
        corners.append((x, y))
        x, y = x + dx, y + dy
    base = [min(point[place] for point in points) - min(corner[place] for corner in corners) for place in (0, 1)]
    return [(a + base[0], b + base[1]) for a, b in corners]


def _mend_line(points: Sequence[Point], drawn: DrawPoint, radius: Radius, draw: random.Random) -> list[Point]:
    del radius, draw
    return [point if point[:2] != point[2:] else drawn() for point in points]


HOLDS: Mapping[str, Callable[[Sequence[Point]], bool]] = {
    "apart": _are_apart,
    "simple": _is_simple,
    "convex": _is_convex,
    "scattered": _are_scattered,
    "different": lambda points: len(set(points)) == len(points),
    "line": lambda points: all(point[:2] != point[2:] for point in points),
}
MEND: Mapping[str, Callable[[Sequence[Point], DrawPoint, Radius, random.Random], list[Point]]] = {
    "apart": _mend_apart,
    "simple": _mend_simple,
    "convex": _mend_convex,
    "scattered": _mend_scattered,
    "different": _mend_different,
    "line": _mend_line,
}
