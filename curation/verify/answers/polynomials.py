"""Quotients of polynomials over the rationals (flint's `fmpq_mpoly`) in whatever is no rational operation itself.

The generators are variables, constants, roots, and functions' values, told apart by how they are written. ln of a
rational number is written as the sum of its primes' logarithms, so that ln 4 is 2·ln 2. Expansion is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from flint import Ordering, fmpq, fmpq_mpoly, fmpq_mpoly_ctx, fmpz

from curation.verify.answers.balls import rational_value
from curation.verify.answers.expr import Expr, const, divide, fn, num, power

MAX_TERMS = 150
MAX_POWER = 12
MAX_FACTORED_BITS = 64
"""Size of a number whose logarithm is split into those of its primes."""

Quotient = tuple[fmpq_mpoly, fmpq_mpoly]
RADIANS = divide(const("pi"), num(180))


class TooManyTerms(Exception):
    """The expanded form would be too large."""


def proportional_numerators(left: Expr, right: Expr) -> bool:
    """Return whether two expressions vanish together: their numerators, in lowest terms, differ by a number only."""
    try:
        ((first, _), (second, _)), _ = _quotients(left, right)
    except (TooManyTerms, ZeroDivisionError):
        return False
    if not first or not second or len(first) != len(second):
        return False
    return bool(first * second.leading_coefficient() == second * first.leading_coefficient())


def linear_form(expr: Expr) -> dict[Expr, Fraction] | None:
    """Return c₁, c₂, … with expr = c₁·a₁ + c₂·a₂ + … for generators aᵢ (1 for the constant term); None otherwise.

    A quotient is reduced first: 2·ln 5/ln 2·ln 2 is 2·ln 5.
    """
    try:
        ((top, below),), generators = _quotients(expr)
    except (TooManyTerms, ZeroDivisionError):
        return None
    if not below.is_constant() or top.total_degree() > 1:
        return None
    coefficients = {}
    for exponents, coefficient in top.terms():
        generator = next((at for at, exponent in zip(generators, exponents, strict=False) if exponent), num(1))
        value = coefficient / below.leading_coefficient()
        coefficients[generator] = Fraction(int(value.p), int(value.q))
    return coefficients


def _quotients(*exprs: Expr) -> tuple[list[Quotient], list[Expr]]:
    generators = list(dict.fromkeys(generator for expr in exprs for generator in _generators(expr)))
    context = fmpq_mpoly_ctx.get([f"g{at}" for at in range(len(generators))] or ["g"], Ordering.lex)
    names = dict(zip(generators, context.gens(), strict=False))
    return [_reduced(_quotient(expr, context, names)) for expr in exprs], generators


def _generators(expr: Expr) -> Iterator[Expr]:
    if rational_value(expr) is not None:
        return
    if expr.op in ("add", "mul"):
        for arg in expr.args:
            yield from _generators(arg)
    elif expr.op == "const" and expr.name == "deg":
        yield const("pi")
    elif expr.op == "pow" and (exponent := rational_value(expr.args[1])) is not None:
        if exponent.denominator == 1:
            yield from _generators(expr.args[0])
        else:
            yield power(expr.args[0], num(exponent / exponent.numerator))
    elif expr.op == "fn" and expr.name == "ln" and (split := split_logarithm(expr.args[0])):
        yield from split
    else:
        yield expr


def split_logarithm(inside: Expr) -> dict[Expr, int] | None:
    """Return ln of a positive rational number as multiples of logarithms of primes; None where it is none, or large."""
    number = rational_value(inside)
    if number is None or number <= 0 or max(number.numerator, number.denominator).bit_length() > MAX_FACTORED_BITS:
        return None
    counts: dict[Expr, int] = {}
    for part, sign in ((number.numerator, 1), (number.denominator, -1)):
        for prime, count in fmpz(part).factor():
            key = fn("ln", num(int(prime)))
            counts[key] = counts.get(key, 0) + sign * int(count)
    return counts


def _quotient(expr: Expr, context: fmpq_mpoly_ctx, names: dict[Expr, fmpq_mpoly]) -> Quotient:
    one = context.constant(1)
    value = rational_value(expr)
    if value is not None:
        return context.constant(fmpq(value.numerator, value.denominator)), one
    if expr.op == "const" and expr.name == "deg":
        return _quotient(RADIANS, context, names)
    if expr.op in ("add", "mul"):
        top, below = _quotient(expr.args[0], context, names)
        for arg in expr.args[1:]:
            other_top, other_below = _quotient(arg, context, names)
            top = top * other_below + other_top * below if expr.op == "add" else top * other_top
            below = below * other_below
            if max(len(top), len(below)) > MAX_TERMS:
                raise TooManyTerms
            if len(below) > 1:
                top, below = _reduced((top, below))
        return top, below
    if expr.op == "pow" and (exponent := rational_value(expr.args[1])) is not None:
        base, count = expr.args[0], exponent.numerator
        if exponent.denominator > 1:
            base = power(base, num(exponent / exponent.numerator))
            top, below = names[base], one
        else:
            top, below = _quotient(base, context, names)
        if abs(count) > MAX_POWER and len(top) + len(below) > 2:
            raise TooManyTerms
        top, below = top ** abs(count), below ** abs(count)
        return (below, top) if count < 0 else (top, below)
    if expr.op == "fn" and expr.name == "ln" and (split := split_logarithm(expr.args[0])):
        total = context.constant(0)
        for key, count in split.items():
            total += names[key] * count
        return total, one
    return names[expr], one


def _reduced(quotient: Quotient) -> Quotient:
    top, below = quotient
    if not below:
        raise ZeroDivisionError
    common = top.gcd(below)
    return top / common, below / common
