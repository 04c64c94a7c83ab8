"""Expressions: what a formula was read as, before anything is computed.

Operations: ``num`` (value, decimal places), ``sym`` (name), ``const`` (pi, e, i, inf, deg), ``add``, ``mul``, ``pow``,
``fn`` (also factorials, sums), ``pm`` and ``mp``. Constructors fold only signs and fractions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

ZERO = Fraction(0)
_INSIDE_A_NAME = re.compile(r"[A-Za-z]\w*")


@dataclass(frozen=True, slots=True)
class Expr:
    """One node of an expression.

    Example: x² is ``Expr("pow", (Expr("sym", name="x"), Expr("num", value=Fraction(2))))``
    """

    op: str
    args: tuple[Expr, ...] = ()
    name: str = ""
    value: Fraction = ZERO
    places: int | None = None


def num(value: Fraction | int, places: int | None = None) -> Expr:
    """Return a rational number."""
    return Expr("num", value=Fraction(value), places=places)


def sym(name: str) -> Expr:
    """Return a variable."""
    return Expr("sym", name=name)


def const(name: str) -> Expr:
    """Return a constant: pi, e, i, inf, or deg (π/180)."""
    return Expr("const", name=name)


def fn(name: str, *args: Expr) -> Expr:
    """Return a function's value."""
    return Expr("fn", args, name)


BINDERS = frozenset(("sum", "prod", "int", "lim"))
"""Functions of a bound variable, its bounds, and last the body."""

ONE = num(1)
MINUS_ONE = num(-1)
INFINITY = const("inf")


def add(*terms: Expr) -> Expr:
    """Return a sum, flattened."""
    flat: list[Expr] = []
    for term in terms:
        flat.extend(term.args if term.op == "add" else (term,))
    return flat[0] if len(flat) == 1 else Expr("add", tuple(flat))


def mul(*factors: Expr) -> Expr:
    """Return a product, flattened."""
    flat: list[Expr] = []
    for factor in factors:
        flat.extend(factor.args if factor.op == "mul" else (factor,))
    return flat[0] if len(flat) == 1 else Expr("mul", tuple(flat))


def neg(term: Expr) -> Expr:
    """Return the negative."""
    if term.op == "num":
        return num(-term.value, term.places)
    if term.op == "pm":
        return Expr("mp", term.args)
    if term.op == "mp":
        return Expr("pm", term.args)
    return mul(MINUS_ONE, term)


def power(base: Expr, exponent: Expr) -> Expr:
    """Return a power, unevaluated."""
    return Expr("pow", (base, exponent))


def divide(top: Expr, bottom: Expr) -> Expr:
    """Return a quotient, or the fraction of exact numbers."""
    if top.op == "num" and bottom.op == "num" and bottom.value != 0 and top.places is None and bottom.places is None:
        return num(top.value / bottom.value)
    return mul(top, power(bottom, MINUS_ONE))


def difference(left: Expr, right: Expr) -> Expr:
    """Return left - right."""
    return add(left, neg(right))


def walk(expr: Expr) -> Iterator[Expr]:
    """Yield every node, parents first."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.args)


def symbols(expr: Expr) -> frozenset[str]:
    """Return the names of the free variables."""
    bound = {node.args[0].name for node in walk(expr) if node.op == "fn" and node.name in BINDERS}
    if not bound:
        return frozenset(node.name for node in walk(expr) if node.op == "sym")
    return _free(expr)


def letters_in(expr: Expr) -> frozenset[str]:
    """Return the free variables, and the letters in names such as f(x)."""
    names = symbols(expr)
    return names.union(*(_INSIDE_A_NAME.findall(name) for name in names if "(" in name))


def _free(expr: Expr) -> frozenset[str]:
    if expr.op == "sym":
        return frozenset((expr.name,))
    names = [_free(arg) for arg in expr.args]
    if expr.op == "fn" and expr.name in BINDERS:
        body = names.pop() - names[0]
        return body.union(*names[1:])
    return frozenset().union(*names)


def has(expr: Expr, op: str, name: str = "") -> bool:
    """Return whether a node of this kind occurs."""
    return any(node.op == op and (not name or node.name == name) for node in walk(expr))


def replaced(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Replace each node for which ``change`` returns another."""
    changed = change(expr)
    if changed is not None or not expr.args:
        return expr if changed is None else changed
    return Expr(expr.op, tuple(replaced(arg, change) for arg in expr.args), expr.name, expr.value, expr.places)


def rename(expr: Expr, names: dict[str, Expr]) -> Expr:
    """Return the expression with variables replaced."""
    return replaced(expr, lambda node: names.get(node.name) if node.op == "sym" else None)


def choose_signs(expr: Expr) -> list[Expr]:
    """Return the readings of ± and ∓, all signs chosen together."""
    if not has(expr, "pm") and not has(expr, "mp"):
        return [expr]
    return [_with_sign(expr, 1), _with_sign(expr, -1)]


def _with_sign(expr: Expr, sign: int) -> Expr:
    def chosen(node: Expr) -> Expr | None:
        if node.op not in ("pm", "mp"):
            return None
        inner = _with_sign(node.args[0], sign)
        return inner if (node.op == "pm") == (sign > 0) else neg(inner)

    return replaced(expr, chosen)


def show(expr: Expr) -> str:
    """Return a short text for people."""
    if expr.op == "num":
        if expr.places is not None:
            return f"{float(expr.value):.12g}" if expr.value.numerator.bit_length() < 900 else "(a long decimal)"
        return str(expr.value) if expr.value.numerator.bit_length() < 900 else "(a long number)"
    if expr.op in ("sym", "const"):
        return expr.name
    inner = [show(arg) for arg in expr.args]
    if expr.op == "pow" and expr.args[0].op == "mul":
        inner[0] = f"({inner[0]})"
    if expr.op == "add":
        return "(" + " + ".join(inner) + ")"
    if expr.op == "mul":
        return "*".join(inner)
    if expr.op == "pow":
        return f"{inner[0]}^({inner[1]})"
    return f"{expr.name or expr.op}({', '.join(inner)})"
