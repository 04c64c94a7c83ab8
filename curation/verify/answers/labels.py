"""Labels: what stands before "=" or ":" and only names the answer, as x, f(x), AB, m + n and det A do."""

from __future__ import annotations

import re

from curation.verify.answers.expr import Expr, has, letters_in, num, rename, show, sym, symbols
from curation.verify.answers.forms import Form, Relation, Sequence, Value, Words, describe

_CALL = re.compile(r"([A-Za-z]\w*'?)\(([A-Za-z0-9])\)")
_COORDINATES = frozenset("xyzt")
"""Letters whose equations are curves: x + y = 5 is no name for 5, as m + n = 5 is."""


def left_name(form: Form) -> str | None:
    """Return the name that "name = value" or "name: value" gives, else None."""
    if not isinstance(form, Relation) or form.ops[0] not in ("=", ":", "in"):
        return None
    left, right = form.items[0], form.items[-1]
    if isinstance(left, Value) and isinstance(right, Value):
        if symbols(right.expr) and not symbols(left.expr):
            return None
        if left.expr.op in ("add", "pow") and right.expr == num(0):
            return None
    return describe(left) if is_label(left) else None


def is_label(form: Form) -> bool:
    """Return whether the left side of an equation only names what the right side is: x, f(x), AB, m + n, det A."""
    if isinstance(form, Words):
        return True
    if isinstance(form, Sequence):
        return all(isinstance(item, Value) and is_label(item) for item in form.items)
    if not isinstance(form, Value):
        return False
    expr = form.expr
    if form.unit == "ratio":
        return bool(symbols(expr))
    if not symbols(expr):
        return not has(expr, "const", "inf")
    if expr.op == "sym" or (expr.op == "fn" and expr.name == "abs" and bool(symbols(expr))):
        return True
    if expr.op == "mul" and (_is_call(expr) or _is_geometric(expr) or expr.args[0] == sym("d")):
        return True
    is_quantity = expr.op == "fn" or len(symbols(expr)) > 1
    return is_quantity and letters_in(expr).isdisjoint(_COORDINATES)


def _is_call(expr: Expr) -> bool:
    """Return whether a product is meant as the value of a function: f(x), W(n), P(A)."""
    first, *rest = expr.args
    if first.op == "pow" and first.args[1] == num(-1) and first.args[0].op == "sym" and first.args[0].name in "fgh":
        first = first.args[0]
    return (
        first.op == "sym"
        and first.name[:1] in "fghFGHPQRSTVWpquvyx"
        and len(rest) == 1
        and rest[0].op in ("sym", "num")
    )


def _is_geometric(expr: Expr) -> bool:
    """Return whether all factors are capital letters, as in AB, ABC and AB/CD."""
    letters = [node for arg in expr.args for node in (arg.args[:1] if arg.op == "pow" else (arg,))]
    parts = [inner for node in letters for inner in (node.args if node.op == "mul" else (node,))]
    return all(node.op == "sym" and node.name[:1].isupper() for node in parts)


def labels_clash(reference: Relation, answer: Relation) -> bool:
    """Return whether two labels name two things: x = 5 against y = 5, a₁ against a₂.

    A name in words fits any letter, AB is BA, y is f(x), and case does not count.
    """
    left, right = reference.items[0], answer.items[0]
    if isinstance(left, Words) or isinstance(right, Words):
        return False
    calls = _call(left), _call(right)
    if (calls[0] is None) != (calls[1] is None):
        return describe(right if calls[0] else left) not in ("y", "Y")
    sides = [side.expr for side in (left, right) if isinstance(side, Value) and side.expr.op == "mul"]
    if len(sides) == 2 and all(_is_geometric(side) for side in sides):
        return sorted(map(show, sides[0].args)) != sorted(map(show, sides[1].args))
    return describe(left).lower() != describe(right).lower()


def _call(form: Form) -> tuple[str, str] | None:
    """Return the function and the argument of a label such as f(x); None for anything else."""
    if not isinstance(form, Value):
        return None
    match = _CALL.fullmatch(form.expr.name) if form.expr.op == "sym" else None
    if match is not None:
        return match.group(1), match.group(2)
    if form.expr.op == "mul" and _is_call(form.expr):
        return show(form.expr.args[0]), show(form.expr.args[1])
    return None


def with_argument_of(reference: Relation, answer: Relation) -> Relation:
    """Return f(n) = 2n + 1 with the argument's name that the reference has: f(m) = 2m + 1."""
    ours, theirs = _call(reference.items[0]), _call(answer.items[0])
    if ours is None or theirs is None or ours[0] != theirs[0] or not (ours[1] + theirs[1]).isalpha():
        return answer
    values = [item for item in answer.items[1:] if isinstance(item, Value)]
    if len(values) + 1 < len(answer.items) or ours[1] == theirs[1]:
        return answer
    inside = [letters_in(value.expr) for value in values]
    if any(ours[1] in letters or (letters - symbols(value.expr)) & {theirs[1]}
           for letters, value in zip(inside, values, strict=True)):  # fmt: skip
        return answer
    renamed = (Value(rename(value.expr, {theirs[1]: sym(ours[1])}), value.unit) for value in values)
    return Relation((reference.items[0], *renamed), answer.ops)
