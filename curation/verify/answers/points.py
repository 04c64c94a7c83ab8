r"""Where two expressions with variables are compared: points that would show a difference, the same on every machine.

Variables are real numbers of every size from 10⁻⁹ to 10⁹ and of both signs, drawn so that no point is special. Some are
whole numbers: those in factorials and binomials, beside \bmod, in bounds of sums, in the exponent of a negative number,
beside π under a sine, and those with a letter for it (n, k, m, …) inside ⌊⌋ and ⌈⌉. They take every residue for the
denominators that occur, small and large, and neighbours of powers. Where an expression has branches (|·|, max, min,
⌊⌋, ⌈⌉, sgn), points lie on both sides of every place where a branch changes, and on it.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from flint import fmpq

from curation.verify.answers.balls import Evaluation, Point, Undecided, Undefined, precision, rational_value
from curation.verify.answers.expr import Expr, add, has, neg, num, symbols, walk

MAX_PERIOD = 720
"""Residues that are all tried."""

_SCALES = (0, 0, 1, -1, 3, -4, 9, -9, 2)
"""Powers of ten of a trial's values; the first points are ordinary, so that most differences show at once."""

_WHOLE_LETTERS = frozenset("abcdijklmnpqMNKL")
_GRID = sorted(
    sign * value
    for value in (1e-6, 0.01, 0.5, 1, 1.5, 2, 3, 7, 10, 30, 100, 365, 1e3, 1e4, 1e6, 1e9)
    for sign in (1, -1)
)
_BRANCHING = frozenset(("abs", "max", "min", "floor", "ceil", "sgn", "mod"))
_STEPS = frozenset(("floor", "ceil", "mod", "gcd", "lcm"))
_WHOLE_ARGUMENTS = frozenset(("factorial", "binomial", "factorial2", "mod", "gcd", "lcm"))


def integer_names(expr: Expr) -> frozenset[str]:
    """Return the variables that can only be integers where they stand."""
    names: set[str] = set()
    for node in walk(expr):
        if node.op == "fn" and node.name in _WHOLE_ARGUMENTS:
            names |= symbols(node)
        elif node.op == "fn" and node.name in ("sum", "prod"):
            names |= symbols(node.args[1]) | symbols(node.args[2])
        elif node.op == "fn" and node.name in ("floor", "ceil") and _has_parts(node.args[0]):
            names |= {name for name in symbols(node) if name[:1] in _WHOLE_LETTERS}
        elif node.op == "pow":
            base = rational_value(node.args[0])
            if base is not None and base < 0:
                names |= symbols(node.args[1])
        elif node.op == "fn" and node.name in ("sin", "cos", "tan") and has(node.args[0], "const", "pi"):
            names |= symbols(node.args[0]) & {"n", "k", "m", "l", "j", "N", "p"}
    return frozenset(names)


def _has_parts(expr: Expr) -> bool:
    """Return whether an expression can be no whole number where its variables are: it has a quotient or a function."""
    return any(
        node.op in ("fn", "const")
        or (node.op == "num" and node.value.denominator > 1)
        or (node.op == "pow" and (node.args[1].op != "num" or node.args[1].value < 0 or node.args[1].value % 1 != 0))
        for node in walk(expr)
    )


def trial_points(left: Expr, right: Expr, integers: frozenset[str] = frozenset()) -> Iterator[tuple[bool, Point]]:
    """Yield points for two expressions, and whether all coordinates are positive; those come first.

    Args:
        integers: variables known to be integers; where there are any, every residue is among the points.
    """
    names = tuple(sorted(symbols(left) | symbols(right)))
    whole = integer_names(left) | integer_names(right) | integers & frozenset(names)
    scattered = _scattered(names, whole)
    if not integers and not any(
        node.op == "fn" and node.name in _BRANCHING for side in (left, right) for node in walk(side)
    ):
        yield from scattered
        return
    points = [point for _, point in scattered]
    if whole:
        points += _residues(names, whole, _period(left, right))
    for name in names:
        if name not in whole:
            points += _around_breaks(left, right, name, points[0])
    for positive in (True, False):
        for point in points:
            if all(value > 0 for value in point.values()) == positive:
                yield positive, point


@lru_cache(maxsize=512)
def _scattered(names: tuple[str, ...], whole: frozenset[str]) -> tuple[tuple[bool, Point], ...]:
    """Return points of every size: all coordinates positive, then negative or mixed."""
    points = []
    for trial, scale in itertools.product(range(2), range(len(_SCALES))):
        point = {}
        for position, name in enumerate(names):
            dice = random.Random(f"{name}/{trial}/{scale}")
            if name in whole:
                rank = position if scale % 2 else len(names) - 1 - position
                point[name] = fmpq(dice.randint(3, 6) + 4 * rank + 2 * (scale % 3))
                continue
            power = _SCALES[scale] if scale < 2 else _SCALES[(scale + dice.randint(0, 1)) % len(_SCALES)]
            size = fmpq(dice.randint(300, 2700), 997) * fmpq(10) ** power
            point[name] = -size if trial and (position == scale % len(names) or dice.random() < 0.6) else size
        positive = all(value > 0 for value in point.values())
        if positive != bool(trial):
            points.append((positive, point))
    return tuple(points)


def _period(left: Expr, right: Expr) -> int:
    """Return a common multiple of the denominators and moduli inside the steps, at most `MAX_PERIOD`."""
    period = 1
    for side in (left, right):
        for node in walk(side):
            if node.op != "fn" or node.name not in _STEPS:
                continue
            for inner in itertools.chain.from_iterable(walk(arg) for arg in node.args):
                number = inner.value if inner.op == "num" else None
                for part in (number.numerator, number.denominator) if number is not None else ():
                    if part and math.lcm(period, abs(part)) <= MAX_PERIOD:
                        period = math.lcm(period, abs(part))
    return period


def _residues(names: tuple[str, ...], whole: frozenset[str], period: int) -> Iterator[dict[str, fmpq]]:
    """Yield every residue of each whole variable, small and large, and the neighbours of powers."""
    powers = [base**exponent for base in (2, 3, 10) for exponent in (1, 2, 3, 5, 8)]
    lone = sorted({power + step for power in powers for step in (-1, 0, 1)} | set(range(min(period + 2, 60))))
    large = [10**6 + at for at in range(0, period, 1 + period // 30)]
    for at, value in enumerate(
        dict.fromkeys((*lone, *range(60, period + 2), *large, *(-1 - at for at in range(min(period, 12)))))
    ):
        point = {}
        for position, name in enumerate(names):
            dice = random.Random(f"{name}/{value}")
            other = fmpq(
                dice.randint(-period - 2, 2 * period + 9) if name in whole else dice.randint(300, 2700),
                1 if name in whole else 997,
            )
            own = name in whole and (len(whole) == 1 or at % len(names) == position)
            point[name] = fmpq(value) if own else other
        yield point


def _around_breaks(left: Expr, right: Expr, name: str, base: Point) -> Iterator[dict[str, fmpq]]:
    """Yield points on both sides of every change of branch along one variable, on it, and between two changes."""
    breaks = sorted(
        {place for edge in _edges(left, right) if name in symbols(edge) for place in _zeros(edge, name, base)}
    )
    middles = [(one + two) / 2 for one, two in itertools.pairwise(breaks)]
    for value in itertools.chain(breaks, middles):
        yield {**base, name: value}
    step = fmpq(1, 1000)
    for value in breaks:
        for near in (value - step * (1 + abs(value)), value + step * (1 + abs(value))):
            yield {**base, name: near}


def _edges(left: Expr, right: Expr) -> Iterator[Expr]:
    """Yield expressions that are zero where a branch changes."""
    for node in itertools.chain(walk(left), walk(right)):
        if node.op != "fn" or node.name not in _BRANCHING:
            continue
        if node.name in ("abs", "sgn"):
            yield node.args[0]
        elif node.name in ("max", "min"):
            yield from (add(one, neg(two)) for one, two in itertools.combinations(node.args, 2))
        else:
            yield from (add(node.args[0], num(-whole)) for whole in _WHOLE_EDGES)


_WHOLE_EDGES = tuple(Fraction(at) for at in (-2, -1, 0, 1, 2, 5))


def _zeros(edge: Expr, name: str, base: Point) -> list[fmpq]:
    """Return where an expression changes its sign along one variable: exactly, or within a thousandth of the place."""
    signs = [
        (fmpq(round(value * 10**6), 10**6), _sign_at(edge, {**base, name: fmpq(round(value * 10**6), 10**6)}))
        for value in _GRID
    ]
    found = [value for value, sign in signs if sign == 0]
    for (low, low_sign), (high, high_sign) in itertools.pairwise(signs):
        if low_sign * high_sign < 0:
            for _ in range(30):
                middle = (low + high) / 2
                sign = _sign_at(edge, {**base, name: middle})
                low, high = (middle, high) if sign == low_sign else (low, middle)
            found.append(_simplest(low, high))
    return found


def _simplest(low: fmpq, high: fmpq) -> fmpq:
    """Return the fraction with the smallest denominator up to 60 in an interval, or its middle."""
    for denominator in range(1, 61):
        numerator = (low * denominator).ceil()
        if numerator <= high * denominator:
            return fmpq(numerator, denominator)
    return (low + high) / 2


def _sign_at(edge: Expr, point: Point) -> int:
    """Return the sign at a point; 2 where there is none."""
    with precision(64):
        evaluation = Evaluation(point, real=True)
        try:
            return evaluation.sign(evaluation.value(edge))
        except (Undefined, Undecided):
            return 2
