"""Exact values: the rational number that an expression is, where exact arithmetic yields it cheaply.

No number grows beyond `MAX_BITS`; one that would has no value (None), never a long computation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from curation.verify.answers.expr import Expr

MAX_BITS = 20_000
"""Size of the numbers that exact arithmetic goes up to."""


def rational_value(expr: Expr) -> Fraction | None:
    """Return the exact value where it is a rational number that exact arithmetic yields cheaply."""
    op = expr.op
    if op == "num":
        return expr.value
    if op in ("sym", "const", "pm", "mp"):
        return None
    if op == "fn" and expr.name not in _RATIONAL_FUNCTIONS:
        return None
    values = [rational_value(arg) for arg in expr.args]
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return None
    if op == "add":
        return _small(sum(numbers, Fraction(0)))
    if op == "mul":
        if sum(value.numerator.bit_length() + value.denominator.bit_length() for value in numbers) > MAX_BITS:
            return None
        return math.prod(numbers, start=Fraction(1))
    if op == "pow":
        return _rational_power(numbers[0], numbers[1])
    return _RATIONAL_FUNCTIONS[expr.name](numbers)


def _small(value: Fraction) -> Fraction | None:
    return value if value.numerator.bit_length() + value.denominator.bit_length() <= MAX_BITS else None


def _rational_power(base: Fraction, exponent: Fraction) -> Fraction | None:
    if base == 0:
        return Fraction(0) if exponent > 0 else None
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(exponent) * size > MAX_BITS:
        return base if base == 1 else None
    if exponent.denominator == 1:
        return base ** int(exponent)
    root = exponent.denominator
    if root > 64 or (root > 2 and size > 2_000):
        return None
    sign = -1 if base < 0 else 1
    if sign < 0 and root % 2 == 0:
        return None
    top, below = exact_root(abs(base.numerator), root), exact_root(base.denominator, root)
    if top is None or below is None:
        return None
    return (sign * Fraction(top, below)) ** exponent.numerator


def exact_root(number: int, order: int) -> int | None:
    """Return the integer root of this order; None where there is none."""
    if order == 2:
        root = math.isqrt(number)
    else:
        low, high = 0, 1 << (number.bit_length() // order + 1)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**order <= number else (low, middle - 1)
        root = low
    return root if root**order == number else None


def _factorial(args: list[Fraction]) -> Fraction | None:
    if args[0].denominator != 1 or not 0 <= args[0] <= 1500:
        return None
    return Fraction(math.factorial(int(args[0])))


def _binomial(args: list[Fraction]) -> Fraction | None:
    top, below = args
    if top.denominator != 1 or below.denominator != 1 or not below >= 0 or not 0 <= top <= 3000:
        return None
    return Fraction(math.comb(int(top), int(below)))


def _integers(combine: Callable[..., int]) -> Callable[[list[Fraction]], Fraction | None]:
    def apply(args: list[Fraction]) -> Fraction | None:
        if any(arg.denominator != 1 for arg in args):
            return None
        return Fraction(combine(*(int(arg) for arg in args)))

    return apply


_RATIONAL_FUNCTIONS: dict[str, Callable[[list[Fraction]], Fraction | None]] = {
    "abs": lambda args: abs(args[0]),
    "floor": lambda args: Fraction(math.floor(args[0])),
    "ceil": lambda args: Fraction(math.ceil(args[0])),
    "max": lambda args: max(args),
    "min": lambda args: min(args),
    "sgn": lambda args: Fraction((args[0] > 0) - (args[0] < 0)),
    "factorial": _factorial,
    "binomial": _binomial,
    "gcd": _integers(math.gcd),
    "lcm": _integers(math.lcm),
    "mod": lambda args: args[0] % args[1] if args[1] else None,
}
