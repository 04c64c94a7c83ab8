"""An exact zero test: both sides as quotients of polynomials over the rationals, in atoms that are kept apart.

Atoms are variables, π, e-powers, roots of primes, and functions of arguments in normal form. i² = -1, √2·√3 = √6 and
2^(k+1) = 2·2^k are known; relations between functions (sin² + cos² = 1) are not, so a difference that is not seen to
be zero here proves nothing. Expansion is bounded by `MAX_TERMS`; no number is larger than `MAX_BITS`.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction

from curation.verify.answers.expr import Expr
from curation.verify.answers.rationals import MAX_BITS, rational_value

_SYMMETRIC = frozenset(("gcd", "lcm", "max", "min"))
MAX_TERMS = 150
MAX_POWER = 12
MAX_ROOT = 12
MAX_PRIME = 1000

Monomial = tuple[tuple[str, Fraction], ...]
Poly = dict[Monomial, Fraction]
Quotient = tuple[Poly, Poly]

ONE_POLY: Poly = {(): Fraction(1)}


class NormalFormTooLarge(Exception):
    """The normal form would be too large, or the expression is outside of what it covers."""


def is_proved_equal(left: Expr, right: Expr) -> bool:
    """Return whether the normal forms prove that the two sides are the same; False proves nothing."""
    try:
        top, below = normal_form(left)
        other_top, other_below = normal_form(right)
        return not _subtract(_multiply(top, other_below), _multiply(other_top, below))
    except NormalFormTooLarge:
        return False


def proportional_numerators(left: Expr, right: Expr) -> bool:
    """Return whether two expressions vanish together: their numerators are multiples of one another by a number."""
    try:
        (first, below), (second, other_below) = normal_form(left), normal_form(right)
    except NormalFormTooLarge:
        return False
    if (
        not first
        or first.keys() != second.keys()
        or _shares_variable(first, below)
        or _shares_variable(second, other_below)
    ):
        return False
    ratios = {value / second[key] for key, value in first.items()}
    return len(ratios) == 1


def _shares_variable(top: Poly, below: Poly) -> bool:
    """Return whether a variable of the denominator divides the numerator, so that zeros would be hidden."""
    names = {name for key in below for name, _ in key}
    return any(all(name in dict(key) for key in top) for name in names)


def normal_form(expr: Expr) -> Quotient:
    """Return the numerator and denominator of an expression. Raises `NormalFormTooLarge`."""
    value = rational_value(expr)
    if value is not None:
        return _constant(value)
    op = expr.op
    if op == "sym":
        return _atom(expr.name)
    if op == "const":
        if expr.name in ("inf",):
            raise NormalFormTooLarge(expr.name)
        if expr.name == "deg":
            return {(("~pi", Fraction(1)),): Fraction(1, 180)}, ONE_POLY
        return _atom("~" + expr.name)
    if op == "add":
        top, below = normal_form(expr.args[0])
        for arg in expr.args[1:]:
            other_top, other_below = normal_form(arg)
            if below == other_below:
                top = _add(top, other_top)
            else:
                top, below = (
                    _add(_multiply(top, other_below), _multiply(other_top, below)),
                    _multiply(below, other_below),
                )
        return top, below
    if op == "mul":
        top, below = normal_form(expr.args[0])
        for arg in expr.args[1:]:
            other_top, other_below = normal_form(arg)
            top, below = _multiply(top, other_top), _multiply(below, other_below)
        return top, below
    if op == "pow":
        return _power(expr.args[0], expr.args[1])
    if op == "fn":
        keys = [_key(normal_form(arg)) for arg in expr.args]
        return _atom(f"{expr.name}({'|'.join(sorted(keys) if expr.name in _SYMMETRIC else keys)})")
    raise NormalFormTooLarge(op)


def _constant(value: Fraction) -> Quotient:
    if value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS:
        raise NormalFormTooLarge("a large number")
    return ({(): value} if value else {}), ONE_POLY


def _atom(name: str, exponent: Fraction = Fraction(1)) -> Quotient:
    if exponent < 0:
        return ONE_POLY, {((name, -exponent),): Fraction(1)}
    return {((name, exponent),): Fraction(1)}, ONE_POLY


def _key(quotient: Quotient) -> str:
    """Return one text for one quotient: scaled so that the denominator's first coefficient is 1."""
    top, below = quotient
    if not below:
        raise NormalFormTooLarge("a zero denominator")
    lead = below[min(below)]
    text = "/".join(str(sorted((key, value / lead) for key, value in poly.items())) for poly in (top, below))
    return _bounded_name(text)


def _bounded_name(text: str) -> str:
    """Return a name that cannot grow with the nesting."""
    return text if len(text) <= 80 else hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _add(left: Poly, right: Poly) -> Poly:
    terms = dict(left)
    for key, value in right.items():
        total = terms.get(key, Fraction(0)) + value
        if total:
            terms[key] = total
        else:
            terms.pop(key, None)
    if len(terms) > MAX_TERMS:
        raise NormalFormTooLarge("many terms")
    return terms


def _subtract(left: Poly, right: Poly) -> Poly:
    return _add(left, {key: -value for key, value in right.items()})


def _multiply(left: Poly, right: Poly) -> Poly:
    if right == ONE_POLY:
        return left
    if left == ONE_POLY:
        return right
    if len(left) * len(right) > MAX_TERMS * 8:
        raise NormalFormTooLarge("many terms")
    terms: Poly = {}
    for key, value in left.items():
        for other, factor in right.items():
            monomial, coefficient = _merge(key, other)
            coefficient *= value * factor
            total = terms.get(monomial, Fraction(0)) + coefficient
            if total:
                terms[monomial] = total
            else:
                terms.pop(monomial, None)
    if len(terms) > MAX_TERMS:
        raise NormalFormTooLarge("many terms")
    return terms


def _merge(left: Monomial, right: Monomial) -> tuple[Monomial, Fraction]:
    """Return the product of two monomials; powers of i and whole powers of primes go into the coefficient."""
    powers = dict(left)
    for name, exponent in right:
        powers[name] = powers.get(name, Fraction(0)) + exponent
    coefficient = Fraction(1)
    factors = []
    for name, exponent in powers.items():
        if name == "~i":
            turns = int(exponent) % 4
            coefficient *= -1 if turns >= 2 else 1
            if turns % 2:
                factors.append((name, Fraction(1)))
            continue
        if name[:1] == "#":
            whole = exponent.numerator // exponent.denominator
            coefficient *= Fraction(int(name[1:])) ** whole
            exponent -= whole
        if exponent:
            factors.append((name, exponent))
    if coefficient.numerator.bit_length() > MAX_BITS:
        raise NormalFormTooLarge("a large number")
    return tuple(sorted(factors)), coefficient


def _power(base: Expr, exponent: Expr) -> Quotient:
    value = rational_value(exponent)
    if value is None:
        return _symbolic_power(base, exponent)
    top, below = normal_form(base)
    if value.denominator == 1:
        count = abs(int(value))
        if len(top) == 1 == len(below) and count <= 10_000:
            top, below = _monomial_power(top, count), _monomial_power(below, count)
        elif count <= MAX_POWER:
            top_power, below_power = ONE_POLY, ONE_POLY
            for _ in range(count):
                top_power, below_power = _multiply(top_power, top), _multiply(below_power, below)
            top, below = top_power, below_power
        else:
            raise NormalFormTooLarge("a large power")
        if value < 0:
            top, below = below, top
        if not below:
            raise NormalFormTooLarge("division by zero")
        return top, below
    number = rational_value(base)
    if number is not None and number > 0 and value.denominator <= MAX_ROOT:
        return _root(number, value)
    return _atom(f"({_key((top, below))})", value)


def _monomial_power(poly: Poly, count: int) -> Poly:
    ((key, value),) = poly.items()
    if value.numerator.bit_length() * count > MAX_BITS or value.denominator.bit_length() * count > MAX_BITS:
        raise NormalFormTooLarge("a large number")
    monomial, coefficient = _merge(tuple((name, exponent * count) for name, exponent in key), ())
    return {monomial: coefficient * value**count}


def _root(number: Fraction, exponent: Fraction) -> Quotient:
    """Return a rational number to a rational power: a coefficient times powers of primes with exponents below 1."""
    powers: dict[int, int] = {}
    for part, sign in ((number.numerator, 1), (number.denominator, -1)):
        for prime, count in _factors(part).items():
            powers[prime] = powers.get(prime, 0) + sign * count
    key = tuple(sorted((f"#{prime}", exponent * count) for prime, count in powers.items()))
    if any(abs(power) > 2000 for _, power in key):
        raise NormalFormTooLarge("a large power")
    monomial, coefficient = _merge(key, ())
    return {monomial: coefficient}, ONE_POLY


def _factors(number: int) -> dict[int, int]:
    exponents: dict[int, int] = {}
    divisor = 2
    while divisor * divisor <= number and divisor <= MAX_PRIME:
        while number % divisor == 0:
            number //= divisor
            exponents[divisor] = exponents.get(divisor, 0) + 1
        divisor += 1
    if number > 1:
        exponents[number] = exponents.get(number, 0) + 1
    return exponents


def _symbolic_power(base: Expr, exponent: Expr) -> Quotient:
    """Return b^(2k + 1) as b·(b^k)²: one atom per term of the exponent, to the power of the term's coefficient."""
    top, below = normal_form(exponent)
    if below != ONE_POLY:
        if len(below) != 1 or () not in below:
            return _atom(f"({_key(normal_form(base))})^({_key((top, below))})")
        top = {key: value / below[()] for key, value in top.items()}
    name = _key(normal_form(base))
    number = rational_value(base)
    product: Quotient = (ONE_POLY, ONE_POLY)
    for monomial, count in top.items():
        if not monomial:
            if number is not None and number > 0 and count.denominator <= MAX_ROOT:
                part = _root(number, count)
            elif base.op == "const" or count.denominator == 1:
                part = _power(base, Expr("num", value=count)) if base.op != "const" else _atom("~" + base.name, count)
            else:
                part = _atom(f"({name})", count)
        else:
            part = _atom(_bounded_name(f"({name})^{monomial}"), count)
        product = _multiply(product[0], part[0]), _multiply(product[1], part[1])
    return product
