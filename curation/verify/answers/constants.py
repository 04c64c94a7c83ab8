r"""Shows that two constants are the same number, which balls alone cannot, in three ways:

- algebraic numbers, also e^{2 ln 3} and 2^{\log_2 5}: a ball decides, as precise as a separation bound (Burnikel,
  Funke, Mehlhorn, Schirra, Schmitt, "A separation bound for real algebraic expressions", ESA 2001: |E| ≥ u^(1-D)/l);
- sums of rational multiples of logarithms, or of angles: zero if the product of powers is 1 (ln 2 + ln 3 = ln 6);
- values of an identity in variables (`generalised`), which `samevalue` tests at points (sin² 1 + cos² 1 = 1).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction

from flint import arb, fmpq, fmpz

from curation.verify.answers.balls import Evaluation, Undecided, Undefined, precision, rational_value, real_ball
from curation.verify.answers.expr import Expr, add, const, divide, fn, has, mul, neg, num, power, sym

MAX_SEPARATION_BITS = 20_000
"""Precision to which the difference of algebraic numbers is computed; also the largest degree."""

MAX_EXPONENT = 2**60
MAX_FACTORED_BITS = 64
"""Size of a number whose logarithm is split into those of its primes."""

ONE, TWO, HALF, IMAGINARY, PI, E = num(1), num(2), num(Fraction(1, 2)), const("i"), const("pi"), const("e")
DEGREE = const("deg")
_CIRCULAR = frozenset(("sin", "cos", "tan", "sec", "csc", "cot"))
_HYPERBOLIC = frozenset(("sinh", "cosh", "tanh", "sech", "csch", "coth"))


def same_algebraic_number(left: Expr, right: Expr) -> bool | None:
    """Return whether two algebraic numbers are the same; None if not algebraic, or too deep."""
    gap = algebraic_form(difference(left, right))
    if gap is None:
        return None
    bound = _Separation()
    above, below = bound.sizes(gap)
    if bound.degree() > MAX_SEPARATION_BITS:
        return None
    bits = above * (bound.degree() - 1) + below
    return _is_below(gap, math.ceil(bits) + 1) if bits <= MAX_SEPARATION_BITS else None


def _is_below(number: Expr, bits: int) -> bool | None:
    """Return whether a number, either zero or above 2**-bits, is zero; None if undecided."""
    for working in (bits + 64, 2 * bits + 512):
        try:
            with precision(working):
                value = Evaluation({}).value(number)
                if isinstance(value, fmpq) or value == 0 or value != 0:
                    return bool(value == 0)
                if value.abs_upper() < arb(2) ** -bits:
                    return True
        except Undecided:
            continue
        except Undefined:
            return None
    return None


class _Separation:
    """Bounds in bits for an algebraic number's conjugates, and its field's degree."""

    def __init__(self) -> None:
        self.roots: dict[Expr, int] = {}
        self.turns = 1

    def degree(self) -> int:
        return math.prod(self.roots.values()) * int(fmpz(self.turns).euler_phi())

    def sizes(self, expr: Expr) -> tuple[float, float]:
        """Return log₂ of bounds for all conjugates of numerator and denominator."""
        if expr.op == "num":
            return math.log2(max(abs(expr.value.numerator), 1)), math.log2(expr.value.denominator)
        if expr.op in ("const", "fn"):
            order = 4 if expr.op == "const" else 2 * expr.args[0].value.denominator
            self.turns = math.lcm(self.turns, order)
            return 0.0, 0.0
        if expr.op == "pow":
            return self._power(expr)
        parts = [self.sizes(arg) for arg in expr.args]
        below = sum(low for _, low in parts)
        if expr.op == "mul":
            return sum(high for high, _ in parts), below
        highest = max(high + below - low for high, low in parts)
        return highest + math.log2(len(parts)), below

    def _power(self, expr: Expr) -> tuple[float, float]:
        exponent = expr.args[1].value
        above, below = self.sizes(expr.args[0])
        if exponent < 0:
            above, below = below, above
        count, order = abs(exponent.numerator), exponent.denominator
        above, below = above * count, below * count
        if order == 1:
            return above, below
        self.roots[power(expr.args[0], num(Fraction(1, order)))] = order
        if above >= below:
            return (above + (order - 1) * below) / order, below
        return above, ((order - 1) * above + below) / order


def algebraic_form(expr: Expr) -> Expr | None:
    """Return an algebraic number in rationals, i, sums, products, rational powers and e^(iπq) (``cis`` of q)."""
    value = rational_value(expr)
    if value is not None:
        return num(value)
    if expr == IMAGINARY or (expr.op == "fn" and expr.name == "cis"):
        return expr
    if expr.op in ("add", "mul"):
        return _combined(expr.op, [algebraic_form(arg) for arg in expr.args])
    if expr.op == "pow":
        exponent = rational_value(expr.args[1])
        if exponent is None:
            return _exponential(expr.args[1] if expr.args[0] == E else mul(expr.args[1], fn("ln", expr.args[0])))
        base = algebraic_form(expr.args[0]) if abs(exponent) < MAX_EXPONENT else None
        return power(base, num(exponent)) if base is not None else None
    if expr.op != "fn":
        return None
    if expr.name in _CIRCULAR or expr.name in _HYPERBOLIC:
        return _circular(expr.name, expr.args[0])
    if expr.name in ("abs", "max", "min"):
        return _branch(expr)
    return None


def _combined(op: str, parts: list[Expr | None]) -> Expr | None:
    """Return a sum or product of the parts; None if one is missing."""
    known = tuple(part for part in parts if part is not None)
    return None if len(known) < len(parts) else Expr(op, known) if known else ONE


def _branch(expr: Expr) -> Expr | None:
    """Return the value of |x|, max or min if balls decide the signs."""
    chosen = expr.args[0]
    for other in [neg(chosen)] if expr.name == "abs" else expr.args[1:]:
        gap = real_ball(difference(other, chosen))
        if gap is None or gap.contains(0):
            return None
        chosen = other if (gap > 0) == (expr.name != "min") else chosen
    return algebraic_form(chosen)


def _exponential(exponent: Expr) -> Expr | None:
    """Return e^exponent for rational multiples of iπ and of logarithms of algebraic numbers."""
    if exponent.op == "add":
        return _combined("mul", [_exponential(term) for term in exponent.args])
    if has(exponent, "const", "i"):
        turns = linear_form(divide(exponent, mul(IMAGINARY, PI)))
        return fn("cis", num(turns[ONE])) if turns is not None and set(turns) == {ONE} else None
    form = linear_form(exponent)
    if form is None or any(generator.op != "fn" or generator.name != "ln" for generator in form):
        return None
    bases = [(algebraic_form(generator.args[0]), num(count)) for generator, count in form.items()]
    return _combined("mul", [power(base, count) if base is not None else None for base, count in bases])


def _circular(name: str, argument: Expr) -> Expr | None:
    """Return a circular or hyperbolic function's value, if e^(i·argument) or e^argument is algebraic."""
    hyperbolic = name in _HYPERBOLIC
    turn = _exponential(argument) if hyperbolic else _unit_vector(argument)
    if turn is None:
        return None
    name = name.replace("h", "")
    back = power(turn, num(-1))
    sine = divide(add(turn, neg(back)), TWO if hyperbolic else mul(TWO, IMAGINARY))
    cosine = divide(add(turn, back), TWO)
    top = cosine if name in ("cos", "cot") else ONE if name in ("sec", "csc") else sine
    below = {"sin": ONE, "cos": ONE, "tan": cosine, "sec": cosine}.get(name, sine)
    return divide(top, below)


def _unit_vector(angle: Expr) -> Expr | None:
    """Return e^(i·angle) for a sum of rational multiples of π and inverse circular functions."""
    form = linear_form(angle)
    return None if form is None else _combined("mul", [_turn(part, share) for part, share in form.items()])


def _turn(part: Expr, share: Fraction) -> Expr | None:
    if part == PI:
        return fn("cis", num(share))
    inside = algebraic_form(part.args[0]) if part.op == "fn" and part.name in ("arctan", "arcsin", "arccos") else None
    if inside is None:
        return None
    square = power(inside, TWO)
    if part.name == "arctan":
        vector = divide(add(ONE, mul(IMAGINARY, inside)), power(add(ONE, square), HALF))
    else:
        other = power(add(ONE, neg(square)), HALF)
        vector = add(inside, mul(IMAGINARY, other)) if part.name == "arccos" else add(other, mul(IMAGINARY, inside))
    return power(vector, num(share))


def linear_form(expr: Expr) -> dict[Expr, Fraction] | None:
    """Return {a₁: c₁, …} with expr = c₁·a₁ + …, or None; the aᵢ are 1 and irrational terms such as ln 2."""
    expr = in_basic_functions(expr)
    atoms = list(dict.fromkeys(_atoms(expr)))

    def at(values: list[Fraction]) -> Fraction | None:
        return rational_value(_replaced(expr, {atom: num(value) for atom, value in zip(atoms, values, strict=True)}))

    dice = random.Random(len(atoms))
    base = [Fraction(dice.randint(10**6, 10**9), 997) for _ in atoms]
    start = at(base)
    steps = [at([*base[:place], value + 1, *base[place + 1 :]]) for place, value in enumerate(base)]
    if start is None or None in steps:
        return None
    slopes = [step - start for step in steps if step is not None]
    rest = start - sum(slope * value for slope, value in zip(slopes, base, strict=True))
    far = [Fraction(dice.randint(10**6, 10**9), 991) for _ in atoms]
    if at(far) != rest + sum(slope * value for slope, value in zip(slopes, far, strict=True)):
        return None
    return {atom: slope for atom, slope in zip((ONE, *atoms), (rest, *slopes), strict=True) if slope}


def _atoms(expr: Expr) -> Iterator[Expr]:
    if expr.op in ("add", "mul") or (expr.op == "pow" and expr.args[1].op == "num" and expr.args[1].value % 1 == 0):
        for arg in expr.args:
            yield from _atoms(arg)
    elif rational_value(expr) is None:
        yield expr


def _replaced(expr: Expr, values: dict[Expr, Expr]) -> Expr:
    if expr in values or not expr.args:
        return values.get(expr, expr)
    return Expr(expr.op, tuple(_replaced(arg, values) for arg in expr.args), expr.name, expr.value, expr.places)


def in_basic_functions(expr: Expr) -> Expr:
    """Return an expression without rarer inverse functions, its logarithms expanded."""
    if expr == DEGREE:
        return mul(num(Fraction(1, 180)), PI)
    if not expr.args:
        return expr
    args = tuple(in_basic_functions(arg) for arg in expr.args)
    if expr.op != "fn" or expr.name not in _BASIC:
        return Expr(expr.op, args, expr.name, expr.value, expr.places)
    return _BASIC[expr.name](args[0])


def logarithm(inside: Expr) -> Expr:
    """Return ln of a positive constant, expanded into logarithms of factors and primes if possible."""
    if inside == E:
        return ONE
    if inside.op == "num" and inside.value > 0:
        parts = ((inside.value.numerator, 1), (inside.value.denominator, -1))
        if all(part.bit_length() <= MAX_FACTORED_BITS for part, _ in parts):
            primes = [(int(p), sign * int(n)) for part, sign in parts for p, n in fmpz(part).factor()]
            return add(num(0), *(mul(num(count), fn("ln", num(prime))) for prime, count in primes))
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


_BASIC: dict[str, Callable[[Expr], Expr]] = {
    "arccot": lambda x: add(mul(HALF, PI), neg(fn("arctan", x))),
    "arcsec": lambda x: fn("arccos", divide(ONE, x)),
    "arccsc": lambda x: fn("arcsin", divide(ONE, x)),
    "arcsinh": lambda x: fn("ln", add(x, power(add(power(x, TWO), ONE), HALF))),
    "arccosh": lambda x: fn("ln", add(x, power(add(power(x, TWO), num(-1)), HALF))),
    "arctanh": lambda x: mul(HALF, fn("ln", divide(add(ONE, x), add(ONE, neg(x))))),
    "ln": logarithm,
}


def is_vanishing_sum(gap: Expr) -> bool:
    """Return whether a number near zero is proved zero, as a sum of logarithms or of angles."""
    form = linear_form(gap)
    if not form or ONE in form:
        return form == {}
    logarithms = {part for part in form if part.op == "fn" and part.name == "ln"}
    total = add(*(mul(num(share), part) for part, share in form.items()))
    if not logarithms:
        vector = _unit_vector(total)
    elif len(logarithms) == len(form) and all(_is_positive(part.args[0]) for part in logarithms):
        vector = _exponential(total)
    else:
        return False
    return vector is not None and same_algebraic_number(vector, ONE) is True


def generalised(expr: Expr) -> tuple[Expr, dict[str, fmpq]]:
    """Return a constant as a function of π, logarithms, and a factor of exponents and angles; and their values."""
    names: dict[str, fmpq] = {}
    return _generalised(expr, names), names


def _variable(name: str, constant: Expr, names: dict[str, fmpq]) -> Expr:
    ball = real_ball(constant, 64)
    names[name] = fmpq(round(float(ball) * 2**30), 2**30) if ball is not None else fmpq(1)
    return sym(name)


def _generalised(expr: Expr, names: dict[str, fmpq]) -> Expr:
    if rational_value(expr) is not None:
        return expr
    if expr.op == "const":
        if expr.name == "e":
            return power(E, _variable("~t", ONE, names))
        return _variable("~pi", PI, names) if expr == PI else expr
    if expr.op == "pow" and rational_value(expr.args[1]) is None:
        exponent = expr.args[1] if expr.args[0] == E else mul(expr.args[1], fn("ln", expr.args[0]))
        terms = exponent.args if exponent.op == "add" else (exponent,)
        return mul(*(_exponential(term) or power(E, _scaled(term, names)) for term in terms))
    if expr.op == "fn" and expr.name == "ln":
        inside = expr.args[0]
        if inside.op == "num":
            return _variable(f"~ln{inside.value}", expr, names)
    if expr.op == "fn" and (expr.name in _CIRCULAR or expr.name in _HYPERBOLIC):
        return fn(expr.name, _scaled(expr.args[0], names))
    return Expr(expr.op, tuple(_generalised(arg, names) for arg in expr.args), expr.name, expr.value, expr.places)


def _scaled(expr: Expr, names: dict[str, fmpq]) -> Expr:
    """Return a sum whose terms without π are multiplied by the common factor."""
    terms = expr.args if expr.op == "add" else (expr,)
    free = [term for term in terms if not has(term, "const", "pi")]
    bound = [term for term in terms if term not in free]
    factor = _variable("~t", ONE, names)
    return add(*bound, *(mul(factor, term) for term in free))


def difference(left: Expr, right: Expr) -> Expr:
    """Return left - right."""
    return add(left, neg(right))
