"""Drawings as numbers: what the templates put into SVG. Pure; widths and heights are in the drawing's own units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 600.0, 160.0
BINS = 20
GAP = 10.0
"""Between the pieces of a column of a flow."""
LINE = 19.0
"""The least from one piece of a column to the next, so that their names do not meet."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a histogram: problems with a pass rate from ``low`` to below ``high``; ``kept`` of them were kept."""

    low: float
    high: float
    rows: int
    kept: int
    x: float
    height: float
    kept_height: float


def histogram(rates: Sequence[tuple[float, bool]]) -> list[Column]:
    """Return pass rates in `BINS` classes of equal width; 1 belongs to the last one.

    Args:
        rates: pass rate, and whether the problem was kept.
    """
    rows, kept = [0] * BINS, [0] * BINS
    for rate, is_kept in rates:
        place = min(int(rate * BINS + 1e-9), BINS - 1)
        rows[place] += 1
        kept[place] += is_kept
    most = max(rows) or 1
    return [
        Column(
            place / BINS,
            (place + 1) / BINS,
            rows[place],
            kept[place],
            WIDTH * place / BINS,
            HEIGHT * rows[place] / most,
            HEIGHT * kept[place] / most,
        )
        for place in range(BINS)
    ]


@dataclass(frozen=True, slots=True)
class Block:
    """A state on one side of a flow."""

    name: str
    rows: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Ribbon:
    """Problems that went from one state to another: the outline of a band as an SVG path."""

    before: str
    after: str
    rows: int
    path: str


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow picture: states before on the left, after on the right."""

    before: tuple[Block, ...]
    after: tuple[Block, ...]
    ribbons: tuple[Ribbon, ...]
    height: float


def flow(moves: Mapping[tuple[str, str], int], height: float = 260.0) -> Flow:
    """Return the flow picture of so many problems from one state to another.

    Args:
        moves: problems by state before and after.
    """
    total = sum(moves.values()) or 1
    scale = height / total
    sides = [_blocks(moves, side, scale) for side in (0, 1)]
    at = [{block.name: block.y for block in side} for side in sides]
    ribbons = []
    order = [{block.name: number for number, block in enumerate(side)} for side in sides]
    for (old, new), rows in sorted(moves.items(), key=lambda item: (order[0][item[0][0]], order[1][item[0][1]])):
        thick, left, right = rows * scale, at[0][old], at[1][new]
        middle = WIDTH / 2
        path = (
            f"M0 {left:.1f}C{middle} {left:.1f} {middle} {right:.1f} {WIDTH} {right:.1f}"
            f"V{right + thick:.1f}C{middle} {right + thick:.1f} {middle} {left + thick:.1f} 0 {left + thick:.1f}Z"
        )
        ribbons.append(Ribbon(old, new, rows, path))
        at[0][old] += thick
        at[1][new] += thick
    bottom = max((block.y + block.height for side in sides for block in side), default=height)
    return Flow(sides[0], sides[1], tuple(ribbons), bottom)


def _blocks(moves: Mapping[tuple[str, str], int], side: int, scale: float) -> tuple[Block, ...]:
    rows: dict[str, int] = {}
    for states, count in moves.items():
        rows[states[side]] = rows.get(states[side], 0) + count
    blocks, y = [], 0.0
    for name, count in sorted(rows.items(), key=lambda item: -item[1]):
        blocks.append(Block(name, count, y, count * scale))
        y += max(count * scale + GAP, LINE)
    return tuple(blocks)


def label(value: float) -> str:
    """Return a value as a chart shows it: three digits, none of what is nothing next to them.

    >>> [label(value) for value in (0.66832, 1470, 5.8e-08, 0.000996)]
    ['0.668', '1,470', '0', '0.001']
    """
    if abs(value) < 5e-7:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.1g}"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chart: the points of an SVG polyline, and the outline of its interval where it has one."""

    name: str
    points: str
    band: str
    last: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over steps. ``ticks`` are pairs of a height in the drawing and the value there."""

    title: str
    lines: tuple[Line, ...]
    ticks: tuple[tuple[float, float], ...]
    first_step: float
    last_step: float


Points = Sequence[tuple[float, float, float | None, float | None]]
"""Step, value, and the ends of its interval."""


def chart(title: str, series: Mapping[str, Points]) -> Chart | None:
    """Return the chart of some series; None where none of them has a point."""
    shown = {name: [point for point in points if math.isfinite(point[1])] for name, points in series.items()}
    shown = {name: points for name, points in shown.items() if points}
    if not shown:
        return None
    every = [point for points in shown.values() for point in points]
    steps = [point[0] for point in every]
    ends = [end for point in every for end in point[1:] if end is not None]
    bottom, top = min(ends), max(ends)
    if 0 < bottom < 0.5 * top or -1e-6 * top < bottom < 0:  # the latter is what sums of floats leave
        bottom = 0.0
    if top - bottom < 1e-9:
        bottom, top = bottom - 0.5 * (abs(bottom) or 1), top + 0.5 * (abs(top) or 1)
    first, last = min(steps), max(steps)

    def x(step: float) -> float:
        return WIDTH * (step - first) / ((last - first) or 1)

    def y(value: float) -> float:
        return HEIGHT * (1 - (value - bottom) / (top - bottom))

    lines = []
    for name, points in shown.items():
        told = [(step, low, high) for step, _, low, high in points if low is not None and high is not None]
        upper = [f"{x(step):.1f},{y(high):.1f}" for step, _, high in told]
        lower = [f"{x(step):.1f},{y(low):.1f}" for step, low, _ in reversed(told)]
        path = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value, _, _ in points)
        lines.append(Line(name, path, " ".join(upper + lower), points[-1][1]))
    ticks = tuple((y(value), value) for value in (bottom, (bottom + top) / 2, top))
    return Chart(title, tuple(lines), ticks, first, last)
