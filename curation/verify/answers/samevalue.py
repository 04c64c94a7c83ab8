"""Decides whether two expressions are the same number or function: proved equal, refuted, or unproved.

  - Rational numbers are compared exactly; other values are refuted if a ball around their difference excludes zero.
  - Constants must agree to `CONSTANT_BITS`, functions to `AGREEMENT_BITS` at all `trial_points`, plus twice the bits
    by which a term is smaller than the largest.
  - For polynomials, quotients and roots, an error needs a zero at every point (Schwartz-Zippel: at most degree/2400
    each).

Variables are real. Complex values count only if i is written or real points do not decide. Constants that are too large
are compared by logarithms.

Points are of both signs from 10⁻⁹ to 10⁹, the same on every machine; `integer_names` get integers. Branches (|·|, max,
min, ⌊⌋, ⌈⌉, sgn) get points along each variable.
"""

from __future__ import annotations

import itertools
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
    Expr,
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

_SCALES = (0, 0, 1, -1, 3, -4, 9, -9, 2)
"""Powers of ten of a trial's values; the first show most differences."""

_WHOLE_LETTERS = frozenset("abcdijklmnpqMNKL")
_COUNTS = tuple(
    fmpq(at)
    for at in sorted(
        {*range(-12, 61), *(base**exponent + step for base in (2, 3, 10) for exponent in (5, 8) for step in (-1, 0, 1))}
        | {10**exponent + step for exponent in (2, 3, 6) for step in range(-1, 12)}
    )
)
"""Values of integer variables with branches: residues of small moduli, neighbours of powers."""

_REALS = tuple(fmpq(at, 2) for at in range(-40, 41)) + tuple(
    fmpq(sign * at, 10**6)
    for at in (1, 10**4, 3 * 10**7, 10**8, 365 * 10**6, 10**9, 10**12, 10**15)
    for sign in (1, -1)
)
"""Values of other variables with branches."""

_BRANCHING = frozenset(("abs", "max", "min", "floor", "ceil", "sgn", "mod"))
_WHOLE_ARGUMENTS = frozenset(("factorial", "binomial", "factorial2", "mod", "gcd", "lcm"))


def integer_names(expr: Expr) -> frozenset[str]:
    """Return variables that must be integers by their position, such as in factorials, or n, k, m inside ⌊⌋."""
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
    """Return whether an expression of integers may be a fraction."""
    return any(
        node.op in ("fn", "const")
        or (node.op == "num" and node.value.denominator > 1)
        or (node.op == "pow" and (node.args[1].op != "num" or node.args[1].value < 0 or node.args[1].value % 1 != 0))
        for node in walk(expr)
    )


def trial_points(left: Expr, right: Expr, integers: frozenset[str] = frozenset()) -> Iterator[tuple[bool, Point]]:
    """Yield points, each with whether all coordinates are positive; those come first.

    Args:
        integers: variables known to be integers.
    """
    names = tuple(sorted(symbols(left) | symbols(right)))
    whole = integer_names(left) | integer_names(right) | integers & frozenset(names)
    scattered = _scattered(names, whole)
    if not integers and not any(
        node.op == "fn" and node.name in _BRANCHING for side in (left, right) for node in walk(side)
    ):
        yield from scattered
        return
    points = [point for _, point in scattered] + list(_along_each(names, whole))
    for positive in (True, False):
        for point in points:
            if all(value > 0 for value in point.values()) == positive:
                yield positive, point


@lru_cache(maxsize=512)
def _scattered(names: tuple[str, ...], whole: frozenset[str]) -> tuple[tuple[bool, Point], ...]:
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


def _along_each(names: tuple[str, ...], whole: frozenset[str]) -> Iterator[dict[str, fmpq]]:
    """Yield points along each variable, the others random."""
    for name in names:
        for value in _COUNTS if name in whole else _REALS:
            dice = random.Random(f"{name}/{value}")
            point = {
                other_name: fmpq(dice.randint(-62, 129)) if other_name in whole else fmpq(dice.randint(300, 2700), 997)
                for other_name in names
            }
            yield {**point, name: value}


FIRST_BITS = 64
AGREEMENT_BITS = 160
"""Bits to which functions must agree at each point."""

CONSTANT_BITS = 8_000
"""Bits to which constants must agree."""

MAX_BITS = 20_000
"""Max bits of precision."""

MIN_AGREEMENTS = 2
"""Min points at which two functions must have values."""


class Equivalence(Enum):
    """A comparison's result; IDENTITY means agreement at points."""

    PROVED = "exact"
    IDENTITY = "identity"
    DIFFERENT = "different"
    EQUAL_ON_POSITIVE = "equal on positive numbers only"
    UNPROVED = "unproved"

    @property
    def is_equal(self) -> bool:
        return self in (Equivalence.PROVED, Equivalence.IDENTITY)


def compare_expressions(left: Expr, right: Expr, integers: frozenset[str] = frozenset()) -> Equivalence:
    """Return whether two expressions are equal wherever both have a value."""
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
    """Return both values at a point where neither is zero, and their quotient's sign."""
    for _, point in trial_points(left, right):
        at = {name: num(as_fraction(value)) for name, value in point.items()}
        first, second = rename(left, at), rename(right, at)
        quotient = real_ball(divide(first, second))
        if quotient is not None and quotient != 0:
            return first, second, 1 if quotient > 0 else -1
    return None


def agree_within_rounding(left: Expr, right: Expr) -> bool:
    """Return whether functions with ``rounded`` numbers agree at all points, to three digits at a few."""
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
    """Return by how many bits the difference is below the values, or below 1."""
    sizes = [magnitude(value) for value in values if value != 0]
    return (max(sizes) if sizes else 0) - magnitude(gap)


def _compare_logarithms(left: Expr, right: Expr) -> Equivalence:
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
    """Return ln of a positive constant, a power's as a product."""
    base = real_ball(inside.args[0]) if inside.op == "pow" else None
    if base is not None and base > 0:
        return mul(inside.args[1], logarithm(inside.args[0]))
    return fn("ln", inside)


def written_number(expr: Expr) -> WrittenNumber | None:
    """Return a number as written, or None."""
    return WrittenNumber(expr.value, expr.places) if expr.op == "num" else None


def constant_value(expr: Expr) -> Fraction | None:
    """Return a real constant, exactly or to 50 digits."""
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
