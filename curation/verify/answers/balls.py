"""Computes values of expressions: exact rationals if possible, else balls (python-flint's Arb) that contain the value.

Odd roots of negative numbers are real, their other powers complex. Limits on sizes and nodes keep evaluations short.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from functools import reduce
from typing import Any

from flint import acb, arb, ctx, fmpq, fmpz

from curation.verify.answers.expr import Expr, has, symbols

Number = fmpq | arb | acb
Point = Mapping[str, fmpq]

MAX_EXACT_BITS = 100_000
"""Max bits of exact numbers."""

MAX_MAGNITUDE_BITS = 2_000
"""Max size of a power's exponent, or of a value's binary exponent."""

MAX_WORK = 5_000
"""Max nodes of an evaluation, with all terms of sums."""

MAX_SUM_TERMS = 200
"""Max terms of a sum or product."""

MAX_ROOT = 64
_PRECISION_LOCK = threading.RLock()  # flint keeps one precision for all threads


class Undefined(Exception):
    """The expression has no value here: a pole, an unknown name or function."""


class MagnitudeTooLarge(Undefined):
    """The value is too large to compute."""


class Undecided(Exception):
    """The ball is on both sides of a branch; more precision may decide."""


class _Irrational(Exception):
    """The expression has no exact rational value."""


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with this many bits; one thread at a time."""
    with _PRECISION_LOCK:
        before, ctx.prec = ctx.prec, bits
        try:
            yield
        finally:
            ctx.prec = before


def as_fraction(value: fmpq) -> Fraction:
    """Convert a flint rational to Python's."""
    return Fraction(int(value.p), int(value.q))


def rational_value(expr: Expr) -> Fraction | None:
    """Return the exact value if it is rational and cheap."""
    if expr.op == "num":
        return expr.value
    if expr.op in ("sym", "const", "pm", "mp"):
        return None
    try:
        value = Evaluation({}, only_exact=True).value(expr)
    except (_Irrational, Undefined, Undecided):
        return None
    return as_fraction(value) if isinstance(value, fmpq) else None


def real_ball(expr: Expr, bits: int = 210) -> arb | None:
    """Return the ball of a real constant, or None."""
    if symbols(expr) or has(expr, "const", "inf"):
        return None
    try:
        with precision(bits):
            value = Evaluation({}).value(expr)
            if not isinstance(value, acb):
                return arb(value)
            tiny = value.imag.contains(0) and value.imag.abs_upper() < value.real.abs_upper() / 2 ** (bits // 2)
            return value.real if tiny else None
    except (Undefined, Undecided):
        return None


def magnitude(value: Number) -> int:
    """Return a rough binary exponent; it is large and negative for zero."""
    if isinstance(value, fmpq):
        return int(abs(value.p)).bit_length() - int(value.q).bit_length() + 1 if value != 0 else -MAX_EXACT_BITS
    mantissa, exponent = value.abs_upper().man_exp()
    return int(mantissa).bit_length() + int(exponent) if mantissa != 0 else -MAX_EXACT_BITS


class Evaluation:
    """Evaluates expressions at one point, at the current precision."""

    def __init__(self, point: Point, *, real: bool = False, only_exact: bool = False) -> None:
        self.point = dict(point)
        self.real = real
        """Whether all values must be real, intermediate ones too."""
        self.only_exact = only_exact
        self.work = 0
        self.absorbed_bits = 0
        """Bits lost next to larger terms or near a function's limit."""

    def value(self, expr: Expr) -> Number:
        """Return the value. Raises `Undefined` and `Undecided`."""
        op = expr.op
        self.work += 1
        if self.work > MAX_WORK:
            raise Undefined("too many terms")
        if op == "num":
            return fmpq(expr.value.numerator, expr.value.denominator)
        if op == "sym":
            if expr.name not in self.point:
                raise Undefined(expr.name)
            return self.point[expr.name]
        if op == "const":
            return self._constant(expr.name)
        if op == "add":
            return self._total([self.value(arg) for arg in expr.args])
        if op == "mul":
            product = self.value(expr.args[0])
            for arg in expr.args[1:]:
                product = product * self.value(arg)
            return self._checked(product)
        if op == "pow":
            return self._power(self.value(expr.args[0]), self.value(expr.args[1]))
        if op == "fn":
            if expr.name in ("sum", "prod"):
                return self._repeat(expr)
            return self._apply(expr.name, [self.value(arg) for arg in expr.args])
        raise Undefined(op)

    def sign(self, value: Number) -> int:
        """Return the sign of a real number. Raises `Undecided`."""
        if isinstance(value, acb):
            raise Undefined("the sign of a complex number")
        if value == 0:
            return 0
        if value > 0 or value < 0:
            return 1 if value > 0 else -1
        raise Undecided

    def floor(self, value: Number) -> fmpq:
        """Return the floor. Raises `Undecided`."""
        if isinstance(value, acb):
            raise Undefined("the floor of a complex number")
        whole = value.floor() if isinstance(value, fmpq) else value.floor().unique_fmpz()
        if whole is None:
            raise Undecided
        return fmpq(whole)

    def _constant(self, name: str) -> Number:
        if self.only_exact:
            raise _Irrational
        if name == "i" and not self.real:
            return acb(0, 1)
        if name in ("pi", "deg", "e"):
            return arb(1).exp() if name == "e" else arb.pi() / (1 if name == "pi" else 180)
        raise Undefined(name)

    def _checked(self, value: Number) -> Number:
        """Return a value, as real if certain. Raises `Undecided` if it is not finite."""
        if isinstance(value, fmpq):
            return value if value.height_bits() <= MAX_EXACT_BITS else arb(value)
        if isinstance(value, acb) and value.imag.is_zero():
            value = value.real
        if isinstance(value, acb) and self.real:
            raise Undefined("not real")
        if not value.is_finite():
            raise Undecided
        return value

    def _total(self, terms: list[Number]) -> Number:
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        if not isinstance(total, fmpq):
            sizes = [magnitude(term) for term in terms if term != 0]
            self.absorbed_bits = max(self.absorbed_bits, max(sizes) - min(sizes) if sizes else 0)
        return self._checked(total)

    def _repeat(self, expr: Expr) -> Number:
        index, low, high, body = expr.args
        start, end = (self.value(bound) for bound in (low, high))
        if not isinstance(start, fmpq) or not isinstance(end, fmpq) or start.q * end.q != 1:
            raise Undefined("a sum to no whole number")
        if end - start > MAX_SUM_TERMS:
            raise Undefined("a long sum")
        outside = dict(self.point)
        result: Number = fmpq(0 if expr.name == "sum" else 1)
        for at in range(int(start.p), int(end.p) + 1):
            self.point[index.name] = fmpq(at)
            term = self.value(body)
            result = self._total([result, term]) if expr.name == "sum" else self._checked(result * term)
        self.point = outside
        return result

    def _power(self, base: Number, exponent: Number) -> Number:
        if base == 0:
            if not isinstance(exponent, fmpq) or exponent <= 0:
                raise Undefined("0 to no positive power")
            return fmpq(0)
        if not isinstance(exponent, fmpq):
            if magnitude(exponent) > MAX_MAGNITUDE_BITS:
                raise MagnitudeTooLarge("the exponent is too large")
            return self._apply("exp", [exponent * self._apply("ln", [base])])
        count, order = int(exponent.p), int(exponent.q)
        if max(abs(magnitude(base)), 1).bit_length() + count.bit_length() > MAX_MAGNITUDE_BITS:
            raise MagnitudeTooLarge("the power is too large")
        root: Number | None = base if order == 1 else _exact_root(base, order)
        if isinstance(root, fmpq) and abs(count) * root.height_bits() <= MAX_EXACT_BITS:
            return root ** fmpz(count)
        if self.only_exact:
            raise _Irrational
        self.absorbed_bits = max(self.absorbed_bits, 2 * order.bit_length())
        if isinstance(base, acb) or (order % 2 == 0 and self.sign(base) < 0):
            return self._checked(acb(base) ** exponent)
        if order > 1 and self.sign(base) < 0:
            size = arb(-base) ** exponent
            return self._checked(-size if count % 2 else size)
        return self._checked(arb(base) ** exponent)

    def _apply(self, name: str, args: list[Number]) -> Number:
        rationals = [arg for arg in args if isinstance(arg, fmpq)]
        if len(rationals) == len(args) and name in _EXACT_FUNCTIONS:
            exact = _EXACT_FUNCTIONS[name](rationals)
            if exact is not None:
                return fmpq(exact)
        if self.only_exact and (name not in _STEPS or len(rationals) < len(args)):
            raise _Irrational
        if name in _BRANCHES:
            return self._checked(_BRANCHES[name](self, args))
        if name not in _FUNCTIONS or len(args) != 1:
            raise Undefined(name)
        argument = args[0]
        size = magnitude(argument)
        if size > (64 if name == "factorial" else MAX_MAGNITUDE_BITS):
            raise MagnitudeTooLarge(f"{name} of a huge number")
        if argument != 0:
            limit = 4 << size if name in _SATURATING and 0 < size < 20 else 2 * abs(size)
            self.absorbed_bits = max(self.absorbed_bits, limit)
        elif name == "ln":
            raise Undefined("ln 0") if argument == 0 else Undecided
        is_real = not isinstance(argument, acb) and (
            name not in _REAL_WHERE or self.sign(_REAL_WHERE[name](argument)) >= 0
        )
        if not is_real and self.real:
            raise Undefined("not real")
        return self._checked(
            _FUNCTIONS[name](acb(argument) if isinstance(argument, acb) or not is_real else arb(argument))
        )


def _exact_root(base: Number, order: int) -> fmpq | None:
    if not isinstance(base, fmpq) or order > MAX_ROOT or (base < 0 and order % 2 == 0):
        return None
    top, bottom = fmpz(abs(base.p)).root(order), fmpz(base.q).root(order)
    if top**order != abs(base.p) or bottom**order != base.q:
        return None
    return fmpq(top if base > 0 else -top, bottom)


def _factorial(args: list[fmpq]) -> fmpz | None:
    if args[0].q != 1 or args[0] > 8000:
        return None
    if args[0] < 0:
        raise Undefined("the factorial of a negative number")
    return fmpz.fac_ui(args[0].p)


def _binomial(args: list[fmpq]) -> fmpz | None:
    top, bottom = args
    if top.q * bottom.q != 1 or not 0 <= top <= 8000:
        return None
    return fmpz.bin_uiui(int(top.p), int(bottom.p)) if 0 <= bottom <= top else fmpz(0)


def _of_whole(combine: Callable[[fmpz, fmpz], fmpz]) -> Callable[[list[fmpq]], fmpz]:
    def apply(args: list[fmpq]) -> fmpz:
        result = args[0].p
        for arg in args:
            if arg.q != 1:
                raise Undefined("of no whole numbers")
            result = combine(result, arg.p)
        return abs(result)

    return apply


def _mod(evaluation: Evaluation, args: list[Number]) -> Number:
    if args[1] == 0:
        raise Undefined("modulo 0")
    return args[0] - args[1] * evaluation.floor(args[0] / args[1])


def _method(name: str) -> Callable[[Any], Any]:
    return lambda value: getattr(value, name)()


_EXACT_FUNCTIONS: dict[str, Callable[[list[fmpq]], fmpq | fmpz | int | None]] = {
    "abs": lambda args: abs(args[0]), "max": max, "min": min, "factorial": _factorial, "binomial": _binomial,
    "gcd": _of_whole(lambda left, right: left.gcd(right)), "lcm": _of_whole(lambda left, right: left.lcm(right)),
}  # fmt: skip
_BRANCHES: dict[str, Callable[[Evaluation, list[Any]], Number]] = {
    "abs": lambda _, args: abs(args[0]),
    "floor": lambda evaluation, args: evaluation.floor(args[0]),
    "ceil": lambda evaluation, args: -evaluation.floor(-args[0]),
    "sgn": lambda evaluation, args: fmpq(evaluation.sign(args[0])),
    "max": lambda evaluation, args: reduce(lambda a, b: a if evaluation.sign(a - b) >= 0 else b, args),
    "min": lambda evaluation, args: reduce(lambda a, b: b if evaluation.sign(a - b) >= 0 else a, args),
    "mod": _mod,
    "Re": lambda _, args: acb(args[0]).real,
    "Im": lambda _, args: acb(args[0]).imag,
    "arg": lambda _, args: acb(args[0]).arg(),
    "cis": lambda _, args: acb(args[0]).exp_pi_i(),
    "rounded": lambda _, args: arb(args[0], args[1]),
    "binomial": lambda _, args: (args[0] + arb(1)).gamma() * (args[1] + arb(1)).rgamma()
    * (args[0] - args[1] + arb(1)).rgamma(),
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{name: _method(name) for name in "exp sin cos tan sec csc cot sinh cosh tanh sech csch coth".split()},
    **{f"arc{name}": _method(f"a{name}") for name in "sin cos tan sinh cosh tanh".split()},
    "ln": lambda x: x.log(), "arccot": lambda x: arb.pi() / 2 - x.atan(), "arcsec": lambda x: (1 / x).acos(),
    "arccsc": lambda x: (1 / x).asin(), "factorial": lambda x: (x + 1).gamma(),
}  # fmt: skip
_REAL_WHERE: dict[str, Callable[[Any], Any]] = {
    "ln": lambda x: x, "arccosh": lambda x: x - 1,
    **dict.fromkeys(("arcsin", "arccos", "arctanh"), lambda x: 1 - x * x),
    **dict.fromkeys(("arcsec", "arccsc"), lambda x: x * x - 1),
}  # fmt: skip
_STEPS = frozenset(("floor", "ceil", "sgn", "mod"))
"""Functions that are rational for rational arguments."""

_SATURATING = frozenset("tanh coth sech csch sinh cosh".split())
"""Functions that approach a limit, or one another, exponentially."""
