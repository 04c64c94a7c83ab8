r"""Decides whether two expressions are the same number or function: proved equal, refuted, or unproved.

  - Rational numbers are compared exactly; balls of growing precision refute others if their difference excludes zero.
  - Constants are equal if they agree to `CONSTANT_BITS`, and twice the bits by which a term is below a large one.
  - Functions that agree at all `trial_points` count as equal. For polynomials, quotients and roots, an error needs a
    zero at every point (Schwartz-Zippel: at most degree/2400 each). Others must agree to `AGREEMENT_BITS`, and twice
    the bits by which a term is below a large one.

Variables are real. Complex values count only if i is written, or real points do not decide. Constants too large to hold
are compared by logarithms.

Points are from 10⁻⁹ to 10⁹ of both signs, the same on every machine. Integers are used in factorials, \bmod, bounds of
sums and similar positions, and for n, k, m and the like inside ⌊⌋ and ⌈⌉, with the residues of the denominators.
Branches (|·|, max, min, ⌊⌋, ⌈⌉, sgn) get points on and around the changes found.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from enum import Enum
from fractions import Fraction
from functools import lru_cache

from flint import fmpq

from curation.verify.answers.balls import (
    MAX_EXACT_BITS,
    Evaluation,
    MagnitudeTooLarge,
    Number,
    Point,
    Undecided,
    Undefined,
    as_fraction,
    magnitude,
    precision,
    rational_value,
    real_ball,
)
from curation.verify.answers.expr import (
    INFINITY,
    ONE,
    Expr,
    add,
    const,
    divide,
    fn,
    has,
    mul,
    neg,
    num,
    rename,
    symbols,
    walk,
)
from curation.verify.answers.policy import WrittenNumber

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
    """Return the variables that must be integers because of their position."""
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
    """Return whether an expression of integers may be no integer itself."""
    return any(
        node.op in ("fn", "const")
        or (node.op == "num" and node.value.denominator > 1)
        or (node.op == "pow" and (node.args[1].op != "num" or node.args[1].value < 0 or node.args[1].value % 1 != 0))
        for node in walk(expr)
    )


def trial_points(left: Expr, right: Expr, integers: frozenset[str] = frozenset()) -> Iterator[tuple[bool, Point]]:
    """Yield points, each with whether all its coordinates are positive; those come first.

    Args:
        integers: variables known to be integers; points run over their residues.
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
    """Return `trial_points` of every size."""
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
    """Return a common multiple, up to `MAX_PERIOD`, of denominators and moduli inside steps."""
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
    """Yield points that run over the residues, and the neighbours of powers."""
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
    """Yield points on, around and between one variable's changes of branch."""
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
    """Return approximate zeros of an expression along one variable."""
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
    """Return an interval's fraction of smallest denominator, up to 60, or its middle."""
    for denominator in range(1, 61):
        numerator = (low * denominator).ceil()
        if numerator <= high * denominator:
            return fmpq(numerator, denominator)
    return (low + high) / 2


def _sign_at(edge: Expr, point: Point) -> int:
    """Return the sign at a point, or 2 if there is none."""
    with precision(64):
        evaluation = Evaluation(point, real=True)
        try:
            return evaluation.sign(evaluation.value(edge))
        except (Undefined, Undecided):
            return 2


FIRST_BITS = 64
AGREEMENT_BITS = 160
"""Bits to which two functions must agree at each point."""

CONSTANT_BITS = 8_000
"""Bits to which two constants must agree: different ones that people write differ long before."""

MAX_BITS = 20_000
"""Precision beyond which magnitudes are too far apart to decide."""

MIN_AGREEMENTS = 2
"""Points at which two functions must have a value."""


class Equivalence(Enum):
    """The result of comparing two expressions; IDENTITY means that they agree at points."""

    PROVED = "exact"
    IDENTITY = "identity"
    DIFFERENT = "different"
    EQUAL_ON_POSITIVE = "equal on positive numbers only"
    UNPROVED = "unproved"

    @property
    def is_equal(self) -> bool:
        return self in (Equivalence.PROVED, Equivalence.IDENTITY)


def compare_expressions(left: Expr, right: Expr, integers: frozenset[str] = frozenset()) -> Equivalence:
    """Return whether two expressions have the same value wherever both have one."""
    if left == right:
        return Equivalence.PROVED
    exact_left, exact_right = rational_value(left), rational_value(right)
    if exact_left is not None and exact_right is not None:
        return Equivalence.PROVED if exact_left == exact_right else Equivalence.DIFFERENT
    endless = [side for side in (left, right) if has(side, "const", "inf")]
    if endless:
        return Equivalence.DIFFERENT if {INFINITY, neg(INFINITY)}.issuperset(endless) else Equivalence.UNPROVED
    if symbols(left) or symbols(right):
        return _compare_functions(left, right, integers)
    try:
        return _compare_constants(left, right)
    except MagnitudeTooLarge:
        return _compare_logarithms(left, right)


def _compare_constants(left: Expr, right: Expr) -> Equivalence:
    try:
        same = _agree_at(left, right, {}, real=False, agreement_bits=CONSTANT_BITS)
    except MagnitudeTooLarge:
        raise
    except Undefined:
        return Equivalence.UNPROVED
    if same is None:
        return Equivalence.UNPROVED
    return Equivalence.IDENTITY if same else Equivalence.DIFFERENT


def _compare_functions(left: Expr, right: Expr, integers: frozenset[str]) -> Equivalence:
    if not has(left, "const", "i") and not has(right, "const", "i"):
        equivalence = _compare_at_points(left, right, integers, real=True)
        if equivalence is not Equivalence.UNPROVED:
            return equivalence
    return _compare_at_points(left, right, integers, real=False)


def _compare_at_points(left: Expr, right: Expr, integers: frozenset[str], *, real: bool) -> Equivalence:
    agreements = 0
    for positive, point in trial_points(left, right, integers):
        try:
            near = _agree_at(left, right, point, real=real)
        except Undefined:
            continue
        if near is False:
            return Equivalence.EQUAL_ON_POSITIVE if agreements and not positive else Equivalence.DIFFERENT
        agreements += near is True
    return Equivalence.IDENTITY if agreements >= MIN_AGREEMENTS else Equivalence.UNPROVED


def values_at_trial_point(left: Expr, right: Expr) -> tuple[Expr, Expr, int] | None:
    """Return both values at a point where neither is zero, and their quotient's sign, or None."""
    for _, point in trial_points(left, right):
        at = {name: num(as_fraction(value)) for name, value in point.items()}
        first, second = rename(left, at), rename(right, at)
        quotient = real_ball(divide(first, second))
        if quotient is not None and quotient != 0:
            return first, second, 1 if quotient > 0 else -1
    return None


def agree_within_rounding(left: Expr, right: Expr) -> bool:
    """Return whether functions with ``rounded`` numbers agree at all points, and to three digits at enough of them."""
    agreements = 0
    for _, point in trial_points(left, right):
        with precision(4 * FIRST_BITS):
            try:
                values = [Evaluation(point).value(side) for side in (left, right)]
            except (Undefined, Undecided):
                continue
            gap = values[0] - values[1]
            if gap != 0:
                return False
            agreements += _agreement_bits((values[0], values[1]), gap) >= 10
    return agreements >= (MIN_AGREEMENTS if symbols(left) else 1)


def _agree_at(
    left: Expr, right: Expr, point: Point, *, real: bool, agreement_bits: int = AGREEMENT_BITS
) -> bool | None:
    """Return whether two values agree, None if undecided; False is proved.

    Raises `Undefined` if one has no value.
    """
    bits = FIRST_BITS
    while bits <= MAX_BITS:
        with precision(bits):
            evaluation = Evaluation(point, real=real)
            try:
                values = evaluation.value(left), evaluation.value(right)
                gap = values[0] - values[1]
            except Undecided:
                bits *= 4
                continue
            if gap == 0:
                return True
            if gap != 0:
                return False
            agreement = _agreement_bits(values, gap)
            needed = agreement_bits + 2 * evaluation.absorbed_bits
            if agreement >= needed:
                return True
        bits = max(2 * bits, needed + bits - agreement + 32)
    return None


def _agreement_bits(values: tuple[Number, Number], gap: Number) -> int:
    """Return how many bits the difference is below the values, or below 1 if both may be zero."""
    sizes = [magnitude(value) for value in values if value != 0]
    return (max(sizes) if sizes else 0) - magnitude(gap)


def _compare_logarithms(left: Expr, right: Expr) -> Equivalence:
    """Compare constants too large to hold by their logarithms."""
    for _ in range(4):
        left, right = logarithm(left), logarithm(right)
        if left == right:
            return Equivalence.PROVED
        try:
            return _compare_constants(left, right)
        except MagnitudeTooLarge:
            continue
    return Equivalence.UNPROVED


def logarithm(inside: Expr) -> Expr:
    """Return ln of a positive constant, expanded into logarithms of its factors."""
    if inside == const("e"):
        return ONE
    if inside.op == "mul" and all(_is_positive(factor) for factor in inside.args):
        return add(*(logarithm(factor) for factor in inside.args))
    if inside.op == "pow" and _is_positive(inside.args[0]):
        return mul(inside.args[1], logarithm(inside.args[0]))
    if inside.op == "fn" and inside.name == "factorial":
        return fn("lgamma", add(inside.args[0], ONE))
    return fn("ln", inside)


def _is_positive(expr: Expr) -> bool:
    if expr.op == "num":
        return expr.value > 0
    if expr.op in ("mul", "pow"):
        return all(_is_positive(factor) for factor in (expr.args if expr.op == "mul" else expr.args[:1]))
    ball = real_ball(expr)
    return (expr.op == "fn" and expr.name == "factorial") or (ball is not None and bool(ball > 0))


def written_number(expr: Expr) -> WrittenNumber | None:
    """Return a number as written, or None for another expression."""
    return WrittenNumber(expr.value, expr.places) if expr.op == "num" else None


def constant_value(expr: Expr) -> Fraction | None:
    """Return a real constant, exactly or to 50 digits, or None."""
    if symbols(expr):
        return None
    exact = rational_value(expr)
    if exact is not None:
        return exact
    ball = real_ball(expr)
    if ball is None or not ball.is_finite() or (ball.rel_accuracy_bits() < 180 and not ball.is_zero()):
        return None
    if magnitude(ball) > MAX_EXACT_BITS:
        return None  # as a fraction it would have millions of digits
    middle = ball.mid().fmpq()
    return Fraction(int(middle.p), int(middle.q))
