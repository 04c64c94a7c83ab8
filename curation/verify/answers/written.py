"""Numbers as they were written, and the exact value of constants."""

from __future__ import annotations

from fractions import Fraction

from curation.verify.answers.balls import rational_value, real_ball
from curation.verify.answers.expr import Expr, symbols, walk
from curation.verify.answers.policy import WrittenNumber


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
    middle = ball.mid().fmpq()
    return Fraction(int(middle.p), int(middle.q))
