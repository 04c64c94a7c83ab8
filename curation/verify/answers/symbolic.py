"""Evaluates integrals, limits, derivatives, sums and products with sympy.

Objects are built from `Expr` node by node, never from text. Sizes are bounded here, time by the worker.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from curation.verify.answers import expr as ex
from curation.verify.answers.balls import rational_value
from curation.verify.answers.expr import Expr, add, const, fn, has, mul, num, power, sym, walk

OPERATORS = frozenset(("int", "antiderivative", "lim", "diff"))
MAX_NODES = 120
MAX_BITS = 2_000


class UnsupportedBySympy(Exception):
    """An expression that sympy lacks, or that is too large."""


def needs_sympy(expr: Expr) -> bool:
    """Return whether an expression needs this tier."""
    for node in walk(expr):
        if node.op == "fn" and node.name in OPERATORS:
            return True
        written_out = node.name not in ("sum", "prod") or all(
            rational_value(bound) is not None for bound in node.args[1:3]
        )
        if node.op == "fn" and not written_out:
            return True
    return False


@lru_cache(maxsize=512)
def evaluate_symbolically(expr: Expr) -> Expr | None:
    """Return the expression with its operators evaluated (an antiderivative adds C), if sympy can."""
    if sum(1 for _ in walk(expr)) > MAX_NODES:
        return None
    try:
        result = _from_sympy(_to_sympy(expr).doit())
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  sympy raises errors of every kind
        return None
    return add(result, sym("C")) if has(expr, "fn", "antiderivative") and not has(expr, "sym", "C") else result


def _to_sympy(expr: Expr, integers: frozenset[str] = frozenset()) -> Any:
    """Convert to sympy. Raises `UnsupportedBySympy`."""
    import sympy

    op = expr.op
    if op == "num":
        if expr.value.numerator.bit_length() + expr.value.denominator.bit_length() > MAX_BITS:
            raise UnsupportedBySympy("a large number")
        return sympy.Rational(expr.value.numerator, expr.value.denominator)
    if op == "sym":
        return _symbol(expr.name, integers)
    if op == "const":
        return {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "inf": sympy.oo, "deg": sympy.pi / 180}[expr.name]
    if op == "add":
        return sympy.Add(*(_to_sympy(arg, integers) for arg in expr.args))
    if op == "mul":
        return sympy.Mul(*(_to_sympy(arg, integers) for arg in expr.args))
    if op == "pow":
        return _power(_to_sympy(expr.args[0], integers), _to_sympy(expr.args[1], integers))
    if op == "fn":
        return _function(expr, integers)
    raise UnsupportedBySympy(op)


def _symbol(name: str, integers: frozenset[str]) -> Any:
    import sympy

    if name in integers:
        return sympy.Symbol(name, integer=True, positive=True)
    return sympy.Symbol(name, real=True)


def _power(base: Any, exponent: Any) -> Any:
    if base.is_Rational and exponent.is_Rational:
        size = max(base.p.bit_length(), base.q.bit_length())
        if abs(exponent) * size > MAX_BITS:
            raise UnsupportedBySympy("a large power")
    return base**exponent


def _function(expr: Expr, integers: frozenset[str]) -> Any:
    import sympy

    name, args = expr.name, expr.args
    if name in ("sum", "prod"):
        index, low, high, body = args
        whole = integers | ex.symbols(low) | ex.symbols(high) | {index.name}
        bounds = (_symbol(index.name, whole), _to_sympy(low, whole), _to_sympy(high, whole))
        return (sympy.Sum if name == "sum" else sympy.Product)(_to_sympy(body, whole), bounds)
    if name == "int":
        variable, low, high, body = args
        return sympy.Integral(
            _to_sympy(body, integers), tuple(_to_sympy(arg, integers) for arg in (variable, low, high))
        )
    if name == "antiderivative":
        return sympy.Integral(_to_sympy(args[1], integers), _to_sympy(args[0], integers))
    if name == "lim":
        variable, bound, body = args
        target = _to_sympy(bound, integers)
        side = "+-" if target.is_finite else "-"
        return sympy.limit(_to_sympy(body, integers), _to_sympy(variable, integers), target, side)
    if name == "diff":
        return sympy.diff(_to_sympy(args[2], integers), _to_sympy(args[0], integers), int(args[1].value))
    sympy_name = _FUNCTIONS.get(name)
    if sympy_name is None:
        raise UnsupportedBySympy(name)
    values = [_to_sympy(arg, integers) for arg in args]
    if sympy_name in ("factorial", "binomial") and any(value.is_Rational and abs(value) > 200 for value in values):
        raise UnsupportedBySympy("a large factorial")
    return getattr(sympy, sympy_name)(*values)


_FUNCTIONS = {
    **{name: name for name in "sin cos tan cot sec csc sinh cosh tanh coth sech csch floor sign".split()},
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "ln": "log", "abs": "Abs", "ceil": "ceiling", "factorial": "factorial", "binomial": "binomial", "max": "Max",
    "min": "Min", "sgn": "sign",
}  # fmt: skip
_BACK = {sympy_name: name for name, sympy_name in _FUNCTIONS.items() if sympy_name != "sign"}


def _from_sympy(value: Any) -> Expr:
    """Convert from sympy. Raises `UnsupportedBySympy`."""
    import sympy

    if value.is_Rational:
        return num(Fraction(int(value.p), int(value.q)))
    if value.is_Symbol:
        return sym(value.name)
    for constant, name in ((sympy.pi, "pi"), (sympy.E, "e"), (sympy.I, "i"), (sympy.oo, "inf")):
        if value == constant:
            return const(name)
    if value == -sympy.oo:
        return ex.neg(ex.INFINITY)
    if value.is_Add:
        return add(*(_from_sympy(arg) for arg in value.args))
    if value.is_Mul:
        return mul(*(_from_sympy(arg) for arg in value.args))
    if value.is_Pow or isinstance(value, sympy.exp):
        return power(*map(_from_sympy, value.as_base_exp()))
    back = _BACK.get(type(value).__name__)
    if back is None:
        raise UnsupportedBySympy(type(value).__name__)
    return fn(back, *(_from_sympy(arg) for arg in value.args))
