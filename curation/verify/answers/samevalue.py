"""Are two expressions the same number, or the same function? Exactly where possible, else by testing.

The order: identical; exact rational values; an exact normal form (`exact`); floats at random points, which can only
refute; then mpmath at random points with 60 digits or as many as the terms' magnitudes need, which refutes or
confirms. Points are the same on every machine. Where a value is too large to hold, logarithms are compared.

Domains: variables are real. Points are positive, negative and mixed, and count where everything is real all through;
complex values count where the imaginary unit is written, or no point is real. A variable in a factorial, in the
exponent of a negative base or beside π in a trigonometric function is an integer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from enum import Enum
from fractions import Fraction
from typing import Any

from curation.verify.answers.exact import is_proved_equal
from curation.verify.answers.expr import Expr, add, fn, has, mul, neg, num, symbols, walk
from curation.verify.answers.numeric import FloatArithmetic, MagnitudeTooLarge, Point, PreciseArithmetic, Uncomputable
from curation.verify.answers.rationals import rational_value

DIGITS = 60
BITS = int(DIGITS * 3.33) + 10
MAX_BITS = 40_000
"""Precision beyond which magnitudes are too far apart to decide."""

FLOAT_TOLERANCE = 1e-6
TRIALS = ("positive", "positive", "negative", "mixed", "positive", "negative")


class Equivalence(Enum):
    """The result: proved or tested equal, refuted, equal for positive variables only, or undecided."""

    PROVED = "exact"
    TESTED = "numeric"
    DIFFERENT = "different"
    EQUAL_ON_POSITIVE = "equal on positive numbers only"
    UNKNOWN = "unknown"

    @property
    def is_equal(self) -> bool:
        return self in (Equivalence.PROVED, Equivalence.TESTED)


def compare_expressions(left: Expr, right: Expr) -> Equivalence:
    """Return whether two expressions have the same value wherever both have one."""
    if left == right:
        return Equivalence.PROVED
    exact_left, exact_right = rational_value(left), rational_value(right)
    if exact_left is not None and exact_right is not None:
        return Equivalence.PROVED if exact_left == exact_right else Equivalence.DIFFERENT
    if has(left, "const", "inf") or has(right, "const", "inf"):
        return Equivalence.DIFFERENT
    names = sorted(symbols(left) | symbols(right))
    integers = integer_names(left) | integer_names(right)
    if _refuted_by_floats(left, right, names, integers):
        return Equivalence.DIFFERENT
    if is_proved_equal(left, right):
        return Equivalence.PROVED
    try:
        return _compare_numerically(left, right, names, integers)
    except MagnitudeTooLarge:
        return _compare_logarithms(left, right)


def integer_names(expr: Expr) -> frozenset[str]:
    """Return the variables that can only be integers where they stand."""
    names: set[str] = set()
    for node in walk(expr):
        if node.op == "fn" and node.name in ("factorial", "binomial", "factorial2"):
            names |= symbols(node)
        elif node.op == "fn" and node.name in ("sum", "prod"):
            names |= symbols(node.args[1]) | symbols(node.args[2])
        elif node.op == "pow":
            base = rational_value(node.args[0])
            if base is not None and base < 0:
                names |= symbols(node.args[1])
        elif node.op == "fn" and node.name in ("sin", "cos", "tan") and has(node.args[0], "const", "pi"):
            names |= symbols(node.args[0]) & {"n", "k", "m", "l", "j", "N", "p"}
    return frozenset(names)


def trial_points(names: list[str], integers: frozenset[str]) -> Iterator[tuple[str, Point]]:
    """Yield trial points, each with the name of its kind."""
    for trial, kind in enumerate(TRIALS if names else ("positive",)):
        point = {}
        for position, name in enumerate(names):
            dice = random.Random(f"{name}/{trial}")
            if name in integers:
                rank = position if trial % 2 else len(names) - 1 - position
                point[name] = Fraction(dice.randint(3, 6) + 4 * rank + 2 * (trial % 3))
                continue
            size = Fraction(dice.randint(300, 2700), 997)
            negative = kind == "negative" or (kind == "mixed" and dice.random() < 0.5)
            point[name] = -size if negative else size
        yield kind, point


def _refuted_by_floats(left: Expr, right: Expr, names: list[str], integers: frozenset[str]) -> bool:
    _, point = next(trial_points(names, integers))
    floats = FloatArithmetic()
    try:
        left_value, right_value = floats.evaluate(left, point), floats.evaluate(right, point)
        largest = max(abs(left_value), abs(right_value))
        distance = abs(left_value - right_value)
    except (Uncomputable, ArithmeticError, ValueError, TypeError):
        return False
    if names and (isinstance(left_value, complex) or isinstance(right_value, complex)):
        return False
    if not 1e-280 < largest < 1e280 or floats.spread > 1e6:
        return False
    return bool(distance > FLOAT_TOLERANCE * largest * floats.spread)


def _compare_numerically(left: Expr, right: Expr, names: list[str], integers: frozenset[str]) -> Equivalence:
    if names and not has(left, "const", "i") and not has(right, "const", "i"):
        equivalence = _compare_at_points(left, right, names, integers, real=True)
        if equivalence is not Equivalence.UNKNOWN:
            return equivalence
    return _compare_at_points(left, right, names, integers, real=False)


def _compare_at_points(
    left: Expr, right: Expr, names: list[str], integers: frozenset[str], *, real: bool
) -> Equivalence:
    agreements = 0
    for kind, point in trial_points(names, integers):
        try:
            left_value, right_value, bits = _evaluate_both(left, right, point, real=real)
        except MagnitudeTooLarge:
            raise
        except (Uncomputable, ArithmeticError, ValueError, TypeError):
            continue
        if bits is None:
            return Equivalence.UNKNOWN
        near = _agree(left_value, right_value, bits)
        if not near:
            return (
                Equivalence.EQUAL_ON_POSITIVE if agreements and kind in ("negative", "mixed") else Equivalence.DIFFERENT
            )
        agreements += 1
        if agreements >= 3 and kind != "positive":
            break
    if agreements >= min(2, len(names) + 1):
        return Equivalence.TESTED
    return Equivalence.UNKNOWN


def _evaluate_both(left: Expr, right: Expr, point: Point, *, real: bool) -> tuple[Any, Any, int | None]:
    """Return both values and the bits they are good for.

    The bits are negative beside rounding noise, and None where it takes too many.

    A small term beside a large one needs the bits between them. A cancellation that grows with the precision itself
    is the rounding noise of a sum that is exactly zero.
    """
    bits = BITS
    cancelled_before = 0
    while True:
        precise = PreciseArithmetic(bits, real=real)
        left_value, right_value = precise.evaluate(left, point), precise.evaluate(right, point)
        lost_bits = max(precise.absorbed, precise.cancelled)
        if lost_bits + BITS // 2 < bits:
            return left_value, right_value, bits - precise.cancelled
        if cancelled_before and precise.cancelled > bits - BITS // 2 and precise.cancelled > cancelled_before + 20:
            return left_value, right_value, -bits
        cancelled_before = max(precise.cancelled, 1)
        bits = lost_bits + 2 * BITS
        if bits > MAX_BITS:
            return left_value, right_value, None


def _agree(left: Any, right: Any, bits: int) -> bool:
    largest = max(abs(left), abs(right))
    if largest == 0:
        return True
    if bits < 0:
        # Noise of a zero: what is small beside 1 is zero too; the rest must agree to the usual digits.
        return bool(largest < PreciseArithmetic(64).mp.mpf(2) ** (bits // 3)) or bool(
            abs(left - right) <= largest / 2 ** (BITS // 2)
        )
    return bool(abs(left - right) <= largest / PreciseArithmetic(bits).mp.mpf(2) ** (bits - 40))


def _compare_logarithms(left: Expr, right: Expr) -> Equivalence:
    """Compare products of powers and factorials too large to hold: equal when their logarithms are, exactly."""
    left_log, right_log = logarithm(left), logarithm(right)
    for _ in range(4):
        if left_log is None or right_log is None:
            return Equivalence.UNKNOWN
        if is_proved_equal(left_log, right_log):
            return Equivalence.PROVED
        try:
            equivalence = _compare_numerically(left_log, right_log, [], frozenset())
        except MagnitudeTooLarge:
            left_log, right_log = logarithm(left_log), logarithm(right_log)
            continue
        return Equivalence.DIFFERENT if equivalence is Equivalence.DIFFERENT else Equivalence.UNKNOWN
    return Equivalence.UNKNOWN


def logarithm(expr: Expr) -> Expr | None:
    """Return ln of a positive constant that is a product of powers and factorials, unevaluated.

    None for anything else.
    """
    if expr.op == "num":
        return fn("ln", expr) if expr.value > 0 else None
    if expr.op == "const":
        return {"e": num(1), "pi": fn("ln", expr)}.get(expr.name)
    if expr.op == "mul":
        parts = [logarithm(arg) for arg in expr.args]
        logarithms = [part for part in parts if part is not None]
        return add(*logarithms) if len(logarithms) == len(parts) else None
    if expr.op == "pow":
        inner = logarithm(expr.args[0])
        return mul(expr.args[1], inner) if inner is not None else None
    if expr.op == "fn" and expr.name == "factorial":
        return fn("lgamma", add(expr.args[0], num(1)))
    if expr.op == "fn" and expr.name == "ln":
        return fn("ln", expr)
    return None


def difference(left: Expr, right: Expr) -> Expr:
    """Return left - right."""
    return add(left, neg(right))
