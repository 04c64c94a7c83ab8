"""Vectors written with unit vectors: 2i - 3j + k is (2, -3, 1)."""

from __future__ import annotations

import re

from curation.verify.answers.expr import Expr, add, mul, num, rename, sym, symbols
from curation.verify.answers.samevalue import compare_expressions

_DIRECTION = re.compile(r"(?:(?:vec|hat|widehat|overrightarrow|bar|overline|underline)\()?([ijk]|imath|jmath)\)?")
_AXES = {"i": 0, "imath": 0, "j": 1, "jmath": 1, "k": 2}


def components(expr: Expr, size: int = 0) -> tuple[Expr, ...] | None:
    """Return the components of a sum of multiples of i, j and k, padded with zeros to ``size``.

    None where it is no such sum, or has no j.
    """
    axes = {name: _AXES[match.group(1)] for name in symbols(expr) if (match := _DIRECTION.fullmatch(name))}
    if 1 not in axes.values() or len(set(axes.values())) != len(axes):
        return None
    expr = _restore_letter_i(expr) if 0 not in axes.values() else expr
    names = {axis: name for name, axis in axes.items()} | ({0: "i"} if 0 not in axes.values() else {})
    zero = {name: num(0) for name in names.values()}
    parts = []
    for axis in range(max(3 if 2 in names else 2, size)):
        parts.append(rename(expr, zero | {names[axis]: num(1)}) if axis in names else num(0))
    rebuilt = add(*(mul(part, sym(names[axis])) for axis, part in enumerate(parts) if axis in names))
    return tuple(parts) if compare_expressions(expr, rebuilt).is_equal else None


def _restore_letter_i(expr: Expr) -> Expr:
    """Replace the imaginary unit by the letter i that was taken for it."""
    if expr.op == "const" and expr.name == "i":
        return sym("i")
    if not expr.args:
        return expr
    return Expr(expr.op, tuple(_restore_letter_i(arg) for arg in expr.args), expr.name, expr.value, expr.places)
