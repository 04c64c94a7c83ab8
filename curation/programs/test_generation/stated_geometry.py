"""Promises on points that a statement makes in words: circles apart, a simple or convex polygon, no three in a line.

Validators often leave such promises out, for they are the longest to check. So a promise is kept whoever vouches for
the inputs: where its words stand in the statement, a block of lines holds that many coordinates, and every given input
keeps it. Rows that break it are moved, shrunk or put in another order (`Promise.mend`).

    apart      circles x, y, r: none touches or overlaps another
    simple     points in order: no two sides of the polygon meet but neighbours in their corner
    convex     points in order: every corner turns the same way, and none is straight
    scattered  no three points lie on one line
    different  no two points are the same, whatever stands beside them in their rows
    line       one line's four numbers are two different points

Invariants: pure but for the random numbers drawn; numbers are compared exactly, as whole ones of the last decimal.
What it does not do: say of shapes that they keep a promise where there is no time to look at them (`geometry`).
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import partial

from curation.programs.test_generation.columns import Column
from curation.programs.test_generation.geometry import HOLDS, MANY, MEND, Point, orientation
from curation.programs.test_generation.grammar import LineNode, LinesNode, Node, RepeatNode
from curation.programs.test_generation.shapes import Line

_NOT = r"\b(?:no|none|not|never|nor|without|\w+n['’]t)\b[^.;:]{0,80}?"
_WORDS: Mapping[str, tuple[int, re.Pattern[str], re.Pattern[str]]] = {
    "apart": (
        3,
        re.compile(_NOT + r"\b(?:touch|overlap|intersect|cross|collide)", re.IGNORECASE),
        re.compile(r"\bradi(?:us|i)\b", re.IGNORECASE),
    ),
    "convex": (2, re.compile(r"\bconvex polygon", re.IGNORECASE), re.compile(r"\b(?:vertex|vertices|corner)")),
    "simple": (
        2,
        re.compile(
            r"\bsimple polygon|\bpolygon\b[^.]{0,80}\b(?:not|never|no)\b[^.]{0,40}\b(?:intersect|cross|touch)"
            r"|\bnon-?(?:self-?)?intersecting",
            re.IGNORECASE,
        ),
        re.compile(r"\bpolygon"),
    ),
    "scattered": (
        2,
        re.compile(r"\bno (?:three|3)\b[^.;:]{0,60}\b(?:collinear|line)\b|\bin general position\b", re.IGNORECASE),
        re.compile(r"\bpoint|\blocat|\bcoordinate|\bposition"),
    ),
    "different": (
        2,
        re.compile(
            r"\bno (?:two|pair)\b[^.;:]{0,60}\bsame\b[^.;:]{0,20}\b(?:point|locat|coordinate|position|place)"
            r"|\bno two (?:points|locations|positions)\b[^.;:]{0,30}\b(?:coincid|equal|same|identical)"
            r"|\b(?:points?|locations?|positions?|coordinates)\b[^.;:]{0,30}\b(?:distinct|different|unique)\b"
            r"|\b(?:distinct|different) (?:points|locations|positions|coordinates)\b",
            re.IGNORECASE,
        ),
        re.compile(r"\bpoint|\blocat|\bcoordinate|\bposition"),
    ),
    "line": (4, re.compile(r"\bthrough (?:the )?(?:two )?points\b", re.IGNORECASE), re.compile("")),
}
"""Of each promise: the columns that it speaks of, its words, and a word that the statement must hold besides."""


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise on the rows that begin in the column ``first``; ``turn`` is 1 where polygons go round against the clock
    in every given input, -1 with it, 0 where that differs.
    """

    kind: str
    first: int
    turn: int = 0

    @property
    def width(self) -> int:
        """Return how many columns it speaks of."""
        return _WORDS[self.kind][0]

    @property
    def most(self) -> int:
        """Return how many rows are made at most: of more it takes too long to tell whether they keep it."""
        return 1 << 30 if self.kind in ("different", "line") else MANY

    def holds(self, rows: Sequence[Line]) -> bool:
        """Return whether rows keep it; not so where they are no numbers, or too many to look at."""
        points = _whole(rows, self.width)
        return points is not None and HOLDS[self.kind](points) and self.turn in (0, orientation(points))

    def mend(self, rows: Sequence[Line], columns: Sequence[Column], draw: random.Random) -> list[Line]:
        """Return rows of the same columns that keep it; raises ValueError where none were found."""
        if len(rows) <= MANY and self.holds(rows):
            return [list(row) for row in rows]
        scale = 10 ** max(column.decimals for column in columns)
        steps = [scale // 10**column.decimals for column in columns]
        points = [tuple(int(Decimal(token) * scale) for token in row) for row in rows]
        radius = max(1, columns[-1].low * 10 ** columns[-1].decimals) * steps[-1], steps[-1]
        new = (
            partial(_drawn, columns, steps, draw)
            if self.kind == "apart"
            else partial(_beside, points, columns, steps, draw)
        )
        for _ in range(4 if len(points) <= MANY else 1):
            mended = MEND[self.kind](points, new, radius, draw)
            if self.turn and orientation(mended) != self.turn:
                mended = mended[::-1]
            texts = [
                [_text(value // step, column) for value, step, column in zip(point, steps, columns, strict=True)]
                for point in mended
            ]
            if self.holds(texts):
                return texts
            points = [new() for _ in points]
        raise ValueError(f"no rows that are {self.kind}")


def stated_promises(
    statement: str,
    nodes: Sequence[Node],
    columns: Mapping[int, Column],
    seen: Callable[[int, int], Sequence[Sequence[Line]]],
) -> tuple[Promise, ...]:
    """Return the promises on points that a statement makes and all given inputs keep.

    Args:
        seen: returns what stands in a number of columns from the one given on, rows for each place of each input.
    """
    text = " ".join(statement.split())
    spoken = [
        (kind, width) for kind, (width, words, also) in _WORDS.items() if words.search(text) and also.search(text)
    ]
    found: dict[int, Promise] = {}
    for node in _flat(nodes):
        if not isinstance(node, LineNode | LinesNode) or not isinstance(node.width, int):
            continue
        for kind, width in spoken:
            fits = node.width == width or (kind == "different" and node.width > width)  # more may stand beside a point
            if not fits or isinstance(node, LineNode) is not (kind == "line") or node.first in found:
                continue
            numbers = [columns.get(node.first + place) for place in range(width)]
            blocks = seen(node.first, width)
            promise = Promise(kind, node.first)
            numeric = all(one is not None and one.kind in ("whole", "real") for one in numbers)
            if numeric and blocks and all(map(promise.holds, blocks)):
                found[node.first] = dataclasses.replace(promise, turn=_same_turn(kind, blocks))
    return tuple(found.values())


def mended_rows(
    promises: Sequence[Promise], first: int, rows: list[Line], columns: Mapping[int, Column], draw: random.Random
) -> list[Line]:
    """Return the rows of the block that begins in the column ``first``, moved so that they keep its promises."""
    for promise in promises:
        if promise.first == first:
            width = promise.width
            own = [columns[first + place] for place in range(width)]
            mended = promise.mend([row[:width] for row in rows], own, draw)
            rows = [[*new, *row[width:]] for new, row in zip(mended, rows, strict=True)]
    return rows


def promised_kinds(sentence: str) -> frozenset[str]:
    """Return the promises on points that the words of a sentence may make."""
    return frozenset(kind for kind, (_, words, _) in _WORDS.items() if words.search(sentence))


def _same_turn(kind: str, blocks: Sequence[Sequence[Line]]) -> int:
    if kind not in ("simple", "convex"):
        return 0
    turns = {orientation(points) for rows in blocks if (points := _whole(rows, 2)) is not None}
    return turns.pop() if len(turns) == 1 else 0


def _flat(nodes: Sequence[Node]) -> list[Node]:
    return [inner for node in nodes for inner in (_flat(node.nodes) if isinstance(node, RepeatNode) else [node])]


def _whole(rows: Sequence[Line], width: int) -> list[Point] | None:
    """Return the numbers of rows as whole ones, all of the same last decimal; None where some are none."""
    try:
        numbers = [[Decimal(token) for token in row[:width]] for row in rows]
    except InvalidOperation:
        return None
    every = [number.as_tuple().exponent for row in numbers for number in row]
    if any(len(row) < width for row in numbers) or not all(isinstance(exponent, int) for exponent in every):
        return None
    shift = -min([0, *(exponent for exponent in every if isinstance(exponent, int))])
    return [tuple(int(number.scaleb(shift)) for number in row) for row in numbers]


def _text(value: int, column: Column) -> str:
    if column.kind == "whole":
        return str(value)
    return f"{Decimal(value).scaleb(-column.decimals):.{column.decimals}f}"


def _beside(points: Sequence[Point], columns: Sequence[Column], steps: Sequence[int], draw: random.Random) -> Point:
    """Return a point that has its coordinates of others, one near another, or one as far as they lie apart.

    None lies much farther: figures of several scales in one are judged by rounding errors.
    """
    way, base = draw.random(), draw.choice(points)
    if way < 0.4:
        return tuple(draw.choice(points)[place] for place in range(len(columns)))
    moved = []
    for place, (column, step) in enumerate(zip(columns, steps, strict=True)):
        values = [point[place] for point in points]
        reach = 2 if way < 0.7 else max(2, (max(values) - min(values)) // step)
        low, high = (end * 10**column.decimals * step for end in (column.low, column.high))
        moved.append(max(low, min(high, base[place] + step * draw.randint(-reach, reach))))
    return tuple(moved)


def _drawn(columns: Sequence[Column], steps: Sequence[int], draw: random.Random) -> Point:
    ends = [(column.low * 10**column.decimals, column.high * 10**column.decimals) for column in columns]
    return tuple(draw.randint(*end) * step for end, step in zip(ends, steps, strict=True))
