"""Are two expressions the same number, or the same function? Proved equal, refuted, or unproved.

  - Rational numbers are compared exactly.
  - Balls refute: where the ball of the difference lies off zero, at a precision that grows until it tells, the two are
    different. This is a proof.
  - Constants whose balls agree are equal where `constants` proves it, else unproved: agreement to many digits is none.
  - Functions that agree at all of `points.trial_points` are taken for equal. For polynomials, quotients and roots the
    values are exact or as good as that, and a wrong equality would need every point to be a zero of the difference
    (Schwartz-Zippel: at most degree/2400 a point). For others the balls agree to `AGREEMENT_BITS` and twice the bits
    that any small term lies below a large one; two analytic functions that differ by less than that at points of 18
    sizes are not known to occur in answers.

Domains: variables are real, and points count where everything is real all through; complex values count where the
imaginary unit is written, or no point is real. Where a value is too large to hold, logarithms are compared.
"""

from __future__ import annotations

import random
from enum import Enum
from fractions import Fraction

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
from curation.verify.answers.constants import (
    difference,
    generalised,
    in_basic_functions,
    is_vanishing_sum,
    logarithm,
    same_algebraic_number,
)
from curation.verify.answers.expr import INFINITY, Expr, divide, has, neg, num, rename, symbols, walk
from curation.verify.answers.points import trial_points
from curation.verify.answers.policy import WrittenNumber

FIRST_BITS = 64
AGREEMENT_BITS = 160
MAX_BITS = 20_000
"""Precision beyond which magnitudes are too far apart to decide."""

MIN_AGREEMENTS = 2
"""Points at which two functions must have a value."""

IDENTITY_TRIALS = 3


class Equivalence(Enum):
    """The result: proved or tested equal, refuted, equal for positive variables only, or not found out."""

    PROVED = "exact"
    IDENTITY = "identity"
    DIFFERENT = "different"
    EQUAL_ON_POSITIVE = "equal on positive numbers only"
    UNPROVED = "unproved"

    @property
    def is_equal(self) -> bool:
        return self in (Equivalence.PROVED, Equivalence.IDENTITY)


def compare_expressions(left: Expr, right: Expr, integers: frozenset[str] = frozenset()) -> Equivalence:
    """Return whether two expressions have the same value wherever both have one.

    Args:
        integers: variables that are known to be integers.
    """
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
        near = _agree_at(left, right, {}, real=False)
    except MagnitudeTooLarge:
        raise
    except Undefined:
        return Equivalence.UNPROVED
    if near is False:
        return Equivalence.DIFFERENT
    left, right = in_basic_functions(left), in_basic_functions(right)
    same = same_algebraic_number(left, right)
    if same is not None:
        return Equivalence.PROVED if same else Equivalence.DIFFERENT
    if near is None:
        return Equivalence.UNPROVED
    if is_vanishing_sum(difference(left, right)):
        return Equivalence.PROVED
    return Equivalence.IDENTITY if _is_value_of_identity(left, right) else Equivalence.UNPROVED


def _is_value_of_identity(left: Expr, right: Expr) -> bool:
    """Return whether two constants are the same value of two functions that are the same around it."""
    (left_function, left_names), (right_function, right_names) = generalised(left), generalised(right)
    centre = left_names | right_names
    if not centre:
        return False
    try:
        for trial in range(IDENTITY_TRIALS):
            dice = random.Random(trial)
            point = {name: value * fmpq(dice.randint(900, 1100), 997) for name, value in sorted(centre.items())}
            if _agree_at(left_function, right_function, point, real=False) is not True:
                return False
    except Undefined:
        return False
    return True


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
    """Return both values at a point where neither is zero, and the sign of their real quotient; None without one."""
    for _, point in trial_points(left, right):
        at = {name: num(as_fraction(value)) for name, value in point.items()}
        first, second = rename(left, at), rename(right, at)
        quotient = real_ball(divide(first, second))
        if quotient is not None and quotient != 0:
            return first, second, 1 if quotient > 0 else -1
    return None


def agree_within_rounding(left: Expr, right: Expr) -> bool:
    """Return whether two functions with rounded coefficients (``rounded``) may be the same: no point tells them apart.

    A point counts where rounding leaves three digits of both values.
    """
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


def _agree_at(left: Expr, right: Expr, point: Point, *, real: bool) -> bool | None:
    """Return whether two values agree: False is a proof that they differ, None that no precision told.

    Raises `Undefined` where one has no value.
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
            needed = AGREEMENT_BITS + 2 * evaluation.absorbed_bits
            if agreement >= needed:
                return True
        bits = max(2 * bits, needed + bits - agreement + 32)
    return None


def _agreement_bits(values: tuple[Number, Number], gap: Number) -> int:
    """Return how many bits the difference lies below the values, or below 1 where both may be zero."""
    sizes = [magnitude(value) for value in values if value != 0]
    return (max(sizes) if sizes else 0) - magnitude(gap)


def _compare_logarithms(left: Expr, right: Expr) -> Equivalence:
    """Compare products of powers and factorials too large to hold: equal when their logarithms are, exactly."""
    for _ in range(4):
        left, right = logarithm(left), logarithm(right)
        if left == right:
            return Equivalence.PROVED
        try:
            return _compare_constants(left, right)
        except MagnitudeTooLarge:
            continue
    return Equivalence.UNPROVED


def written_number(expr: Expr) -> WrittenNumber | None:
    """Return how a number was written: an integer, fraction or decimal, perhaps with a sign or a power of ten."""
    if expr.op == "num":
        return WrittenNumber(expr.value, expr.places)
    value = rational_value(expr)
    if value is None:
        return None
    decimals = [node for node in walk(expr) if node.op == "num" and node.places is not None]
    if not decimals:
        return WrittenNumber(value, None)
    if expr.op == "mul" and len(decimals) == 1 and decimals[0] in expr.args and decimals[0].value != 0:
        scale = value / decimals[0].value
        places = decimals[0].places or 0
        size = abs(scale)
        while size >= 10 and size.numerator % 10 == 0:
            size, places = size / 10, places - 1
        while size <= Fraction(1, 10) and size.denominator % 10 == 0:
            size, places = size * 10, places + 1
        return WrittenNumber(value, places) if size == 1 else WrittenNumber(value, None)
    return WrittenNumber(value, None)


def constant_value(expr: Expr) -> Fraction | None:
    """Return the value of a real constant to 60 digits; None where it has none."""
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
