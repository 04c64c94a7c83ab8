"""Numbers out of expressions: floats, and mpmath numbers of any precision.

`FloatArithmetic` and `PreciseArithmetic` evaluate at a point; roots of odd order are real, other powers of negative
numbers complex. Whatever is too large to hold (`MagnitudeTooLarge`), undefined at the point or not known to evaluate
(`Uncomputable`) says so instead of costing time.
"""

from __future__ import annotations

import cmath
import math
import threading
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import mpmath

from curation.verify.answers.expr import Expr
from curation.verify.answers.rationals import rational_value

MAX_EXPONENT_BITS = 2_000
"""Size of an exponent that a power is evaluated with."""

MAX_WORK = 5_000
"""Nodes of one evaluation, sums written out."""

MAX_SUM_TERMS = 200
"""Terms of a sum or product that is written out."""


class Uncomputable(Exception):
    """The expression has no value: it is undefined at this point, or has an unknown function."""


class MagnitudeTooLarge(Uncomputable):
    """A value whose magnitude cannot be held."""


Point = Mapping[str, Fraction]


class Arithmetic:
    """Evaluation of expressions in one kind of number."""

    work = 0
    """Nodes evaluated so far; beyond `MAX_WORK` there is no value."""

    def evaluate(self, expr: Expr, point: Point) -> Any:
        """Return the value at ``point``; `Uncomputable` where there is none."""
        op = expr.op
        self.work += 1
        if self.work > MAX_WORK:
            raise Uncomputable("too many terms")
        if op == "num":
            return self.number(expr.value)
        if op == "sym":
            if expr.name not in point:
                raise Uncomputable(expr.name)
            return self.number(point[expr.name])
        if op == "const":
            return self.constant(expr.name)
        if op == "add":
            return self.total([self.evaluate(arg, point) for arg in expr.args])
        if op == "mul":
            product = self.evaluate(expr.args[0], point)
            for arg in expr.args[1:]:
                product = product * self.evaluate(arg, point)
            return product
        if op == "pow":
            return self.raise_to(expr.args[0], expr.args[1], point)
        if op == "fn":
            if expr.name in ("sum", "prod"):
                return self.repeat(expr, point)
            return self.apply(expr.name, [self.evaluate(arg, point) for arg in expr.args])
        raise Uncomputable(op)

    def repeat(self, expr: Expr, point: Point) -> Any:
        index, low, high, body = expr.args
        start, end = (self._whole(bound, point) for bound in (low, high))
        if end - start > MAX_SUM_TERMS:
            raise Uncomputable("a long sum")
        values = [self.evaluate(body, {**point, index.name: Fraction(at)}) for at in range(start, end + 1)]
        if expr.name == "sum":
            return self.total(values or [self.number(Fraction(0))])
        product = self.number(Fraction(1))
        for value in values:
            product = product * value
        return product

    def _whole(self, bound: Expr, point: Point) -> int:
        value = self.evaluate(bound, point)
        if value != int(value):
            raise Uncomputable("a sum to a fraction")
        return int(value)

    def raise_to(self, base_expr: Expr, exponent_expr: Expr, point: Point) -> Any:
        base = self.evaluate(base_expr, point)
        exact = rational_value(exponent_expr)
        if exact is None:
            return self.power(base, self.evaluate(exponent_expr, point))
        if base == 0 and exact <= 0:
            raise Uncomputable("0 to no positive power")
        if exact.denominator == 1:
            return self.integer_power(base, exact.numerator)
        if exact.denominator % 2 and not self.is_complex(base) and base < 0:
            root = self.power(-base, self.number(exact))
            return -root if exact.numerator % 2 else root
        return self.power(base, self.number(exact))

    def number(self, value: Fraction) -> Any:
        raise NotImplementedError

    def constant(self, name: str) -> Any:
        raise NotImplementedError

    def total(self, terms: list[Any]) -> Any:
        raise NotImplementedError

    def power(self, base: Any, exponent: Any) -> Any:
        raise NotImplementedError

    def integer_power(self, base: Any, exponent: int) -> Any:
        raise NotImplementedError

    def apply(self, name: str, args: list[Any]) -> Any:
        raise NotImplementedError

    def is_complex(self, value: Any) -> bool:
        raise NotImplementedError


class FloatArithmetic(Arithmetic):
    """Double precision: quick to refute, never enough to confirm."""

    def __init__(self) -> None:
        self.spread = 1.0

    def number(self, value: Fraction) -> float:
        return float(value)

    def constant(self, name: str) -> Any:
        if name == "inf":
            raise Uncomputable(name)
        return {"pi": math.pi, "e": math.e, "i": 1j, "deg": math.pi / 180}[name]

    def is_complex(self, value: Any) -> bool:
        return isinstance(value, complex)

    def total(self, terms: list[Any]) -> Any:
        total = sum(terms)
        largest = max(abs(term) for term in terms)
        if largest:
            self.spread = max(self.spread, largest / (abs(total) or largest * 1e-16))
        return total

    def power(self, base: Any, exponent: Any) -> Any:
        if base == 0 and (isinstance(exponent, complex) or exponent <= 0):
            raise Uncomputable("0 to no positive power")
        return base**exponent

    def integer_power(self, base: Any, exponent: int) -> Any:
        return base**exponent

    def apply(self, name: str, args: list[Any]) -> Any:
        function = _FLOAT_FUNCTIONS.get(name)
        if function is None:
            raise Uncomputable(name)
        return function(*args)


def _real_or_complex(real: Callable[[float], float], complex_: Callable[[complex], complex]) -> Callable[[Any], Any]:
    def apply(value: Any) -> Any:
        return complex_(value) if isinstance(value, complex) else real(value)

    return apply


def _ln(value: Any) -> Any:
    if isinstance(value, complex) or value < 0:
        return cmath.log(value)
    return math.log(value)


def _one_over(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: 1 / function(value)


def _real_inside(real: Callable[[float], float], complex_: Callable[[complex], complex]) -> Callable[[Any], Any]:
    """Return a function that is real on [-1, 1] and complex elsewhere."""
    return lambda value: complex_(value) if isinstance(value, complex) or abs(value) > 1 else real(value)


_SIN = _real_or_complex(math.sin, cmath.sin)
_COS = _real_or_complex(math.cos, cmath.cos)
_TAN = _real_or_complex(math.tan, cmath.tan)
_SINH = _real_or_complex(math.sinh, cmath.sinh)
_COSH = _real_or_complex(math.cosh, cmath.cosh)
_TANH = _real_or_complex(math.tanh, cmath.tanh)
_FLOAT_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sin": _SIN, "cos": _COS, "tan": _TAN, "sec": _one_over(_COS), "csc": _one_over(_SIN), "cot": _one_over(_TAN),
    "sinh": _SINH, "cosh": _COSH, "tanh": _TANH, "sech": _one_over(_COSH), "csch": _one_over(_SINH),
    "coth": _one_over(_TANH),
    "arcsin": _real_inside(math.asin, cmath.asin), "arccos": _real_inside(math.acos, cmath.acos),
    "arctan": _real_or_complex(math.atan, cmath.atan), "arccot": lambda x: math.pi / 2 - math.atan(x),
    "arcsec": lambda x: _FLOAT_FUNCTIONS["arccos"](1 / x), "arccsc": lambda x: _FLOAT_FUNCTIONS["arcsin"](1 / x),
    "arcsinh": _real_or_complex(math.asinh, cmath.asinh), "arccosh": cmath.acosh, "arctanh": cmath.atanh,
    "ln": _ln, "abs": abs, "floor": math.floor, "ceil": math.ceil, "max": max, "min": min,
    "sgn": lambda x: (x > 0) - (x < 0), "factorial": lambda n: math.gamma(n + 1),
    "binomial": lambda n, k: math.gamma(n + 1) / math.gamma(k + 1) / math.gamma(n - k + 1),
    "mod": lambda a, b: a % b, "Re": lambda z: complex(z).real, "Im": lambda z: complex(z).imag,
    "arg": lambda z: cmath.phase(z), "lgamma": lambda x: math.lgamma(x),
}  # fmt: skip

_LOCAL = threading.local()


class PreciseArithmetic(Arithmetic):
    """mpmath numbers of ``bits`` bits, in a context of this thread's own."""

    def __init__(self, bits: int, *, real: bool = False) -> None:
        context = getattr(_LOCAL, "context", None)
        if context is None:
            context = _LOCAL.context = mpmath.mp.clone()
        context.prec = bits
        self.mp = context
        self.bits = bits
        self.real = real
        """Whether a value that is not real, even in between, is no value."""
        self.absorbed = 0
        self.cancelled = 0
        """Bits by which, in some sum, the smallest term lay under the largest, and the sum under its largest term."""

    def number(self, value: Fraction) -> Any:
        return self.mp.mpf(value.numerator) / value.denominator

    def constant(self, name: str) -> Any:
        if name == "inf":
            raise Uncomputable(name)
        if name == "deg":
            return self.mp.pi / 180
        return {"pi": +self.mp.pi, "e": +self.mp.e, "i": self.mp.mpc(0, 1)}[name]

    def is_complex(self, value: Any) -> bool:
        return isinstance(value, self.mp.mpc)

    def total(self, terms: list[Any]) -> Any:
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        sizes = [self._size(term) for term in terms if term != 0]
        if sizes:
            self.absorbed = max(self.absorbed, max(sizes) - min(sizes))
            if total != 0:
                self.cancelled = max(self.cancelled, max(sizes) - self._size(total))
        return total

    def _size(self, value: Any) -> int:
        size = self.mp.mag(value)
        if not isinstance(size, int):
            raise Uncomputable("not finite")
        return size

    def power(self, base: Any, exponent: Any) -> Any:
        if base == 0:
            raise Uncomputable("0 to no positive power")
        if exponent == 0:
            return self.mp.mpf(1)
        size = self._size(exponent)
        if size > MAX_EXPONENT_BITS:
            raise MagnitudeTooLarge("an exponent beyond all measure")
        if not self.is_complex(exponent) and exponent == self.mp.floor(exponent) and size < self.bits - 8:
            return self.integer_power(base, int(exponent))
        with self.mp.extraprec(max(0, size) + 16):
            result = self.mp.exp(exponent * self.mp.log(base))
        return self._check_real(+result)

    def integer_power(self, base: Any, exponent: int) -> Any:
        if exponent.bit_length() > MAX_EXPONENT_BITS:
            raise MagnitudeTooLarge("an exponent beyond all measure")
        size = self._size(base) if base != 0 else 0
        if abs(size).bit_length() + exponent.bit_length() > MAX_EXPONENT_BITS:
            raise MagnitudeTooLarge("a power beyond all measure")
        return base**exponent

    def apply(self, name: str, args: list[Any]) -> Any:
        function = _PRECISE_FUNCTIONS.get(name)
        if function is None:
            raise Uncomputable(name)
        for arg in args:
            if arg != 0 and self._size(arg) > (64 if name in _GAMMAS else 3000):
                raise MagnitudeTooLarge(f"{name} of a huge number")
        return self._check_real(function(self.mp, *args))

    def _check_real(self, value: Any) -> Any:
        if self.real and self.is_complex(value):
            raise Uncomputable("not real")
        return value


_GAMMAS = frozenset(("factorial", "binomial", "lgamma"))


def _mpmath_fn(name: str) -> Callable[..., Any]:
    return lambda mp, *args: getattr(mp, name)(*args)


def _log(mp: Any, value: Any) -> Any:
    if value == 0:
        raise Uncomputable("ln 0")
    return mp.log(value)


_PRECISE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _mpmath_fn(name) for name in "sin cos tan sec csc cot sinh cosh tanh sech csch coth".split()},
    "floor": _mpmath_fn("floor"), "ceil": _mpmath_fn("ceil"), "arg": _mpmath_fn("arg"),
    "arcsin": _mpmath_fn("asin"), "arccos": _mpmath_fn("acos"), "arctan": _mpmath_fn("atan"),
    "arccot": lambda mp, x: mp.pi / 2 - mp.atan(x), "arcsec": lambda mp, x: mp.acos(1 / x),
    "arccsc": lambda mp, x: mp.asin(1 / x), "arcsinh": _mpmath_fn("asinh"), "arccosh": _mpmath_fn("acosh"),
    "arctanh": _mpmath_fn("atanh"), "ln": _log, "abs": lambda _, x: abs(x), "max": lambda _, *xs: max(xs),
    "min": lambda _, *xs: min(xs), "sgn": _mpmath_fn("sign"), "factorial": _mpmath_fn("factorial"),
    "binomial": _mpmath_fn("binomial"), "mod": lambda mp, a, b: a - b * mp.floor(a / b), "Re": _mpmath_fn("re"),
    "Im": _mpmath_fn("im"), "lgamma": _mpmath_fn("loggamma"),
}  # fmt: skip
