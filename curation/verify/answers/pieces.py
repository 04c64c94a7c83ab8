"""A formula against a function by cases: equal on every piece, and the pieces cover the line."""

from __future__ import annotations

from curation.verify.answers.constants import difference
from curation.verify.answers.expr import INFINITY, Expr, add, divide, has, mul, num, power, rename, sym, symbols
from curation.verify.answers.forms import Form, Sequence, Value
from curation.verify.answers.regions import MINUS_INFINITY, Interval, NotARegion, merge_intervals, parse_region
from curation.verify.answers.samevalue import compare_expressions


def equals_cases(value: Expr, cases: Sequence) -> bool:
    """Return whether ``value`` is what each case says on its interval, and the intervals are the whole line."""
    names = symbols(value)
    if len(names) != 1:
        return False
    name = next(iter(names))
    everywhere: list[Interval] = []
    for case in cases.items:
        if not isinstance(case, Sequence) or len(case.items) != 2 or not isinstance(case.items[0], Value):
            return False
        try:
            pieces = parse_region(case.items[1])
        except NotARegion:
            return False
        everywhere += pieces
        if not all(_same_on(value, case.items[0].expr, name, piece) for piece in pieces):
            return False
    whole = merge_intervals(everywhere)
    return len(whole) == 1 and whole[0].low == MINUS_INFINITY and whole[0].high == INFINITY


def is_piecewise(form: Form) -> bool:
    """Return whether a form is a set of values with conditions."""
    return isinstance(form, Sequence) and form.brackets == "{}" and all(_is_case(item) for item in form.items)


def _is_case(form: Form) -> bool:
    return isinstance(form, Sequence) and len(form.items) == 2 and not isinstance(form.items[1], Value | Sequence)


def _same_on(left: Expr, right: Expr, name: str, piece: Interval) -> bool:
    """Return whether two expressions agree on a piece.

    Inside, they are compared by a variable that runs over the open interval; then at the ends that belong to it.
    """
    square = power(sym(name), num(2))
    if piece.low == piece.high:
        return _same_at(left, right, name, piece.low)
    if has(piece.low, "const", "inf") and has(piece.high, "const", "inf"):
        inside = sym(name)
    elif has(piece.low, "const", "inf"):
        inside = difference(piece.high, square)
    elif has(piece.high, "const", "inf"):
        inside = add(piece.low, square)
    else:
        share = divide(square, add(square, num(1)))
        inside = add(piece.low, mul(difference(piece.high, piece.low), share))
    ends = [end for end, within in ((piece.low, piece.includes_low), (piece.high, piece.includes_high)) if within]
    return _same_at(left, right, name, inside) and all(_same_at(left, right, name, end) for end in ends)


def _same_at(left: Expr, right: Expr, name: str, place: Expr) -> bool:
    return compare_expressions(rename(left, {name: place}), rename(right, {name: place})).is_equal
