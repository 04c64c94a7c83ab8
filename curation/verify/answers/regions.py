"""Reads regions of the real line: intervals, unions, inequalities in one unknown, finite sets, complements.

Equal regions with numeric ends are equal lists, sorted and merged; others stay as written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from curation.verify.answers.balls import real_ball
from curation.verify.answers.expr import INFINITY, Expr, difference, divide, has, neg, num, rename, symbols
from curation.verify.answers.forms import Form, Relation, Sequence, Union, Value, Words, without_unit
from curation.verify.answers.labels import is_label
from curation.verify.answers.samevalue import compare_expressions

MAX_INTERVALS = 100
FLIP = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!=", "=": "="}
_NAMING = ("=", "in", ":")
MINUS_INFINITY = neg(INFINITY)


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval: its ends, and whether they belong to it."""

    low: Expr
    high: Expr
    includes_low: bool
    includes_high: bool


class NotARegion(Exception):
    """The form is no region of the line."""


class UnsolvedRegion(NotARegion):
    """A form that may be a region, but is not solved."""


def parse_region(form: Form, *, tuples: bool = False) -> list[Interval]:
    """Return a form's merged intervals; ``tuples`` admits (a, b) as open. Raises `NotARegion`."""
    return merge_intervals(_intervals(form, tuples))


def is_region(form: Form) -> bool:
    """Return whether a form must be a region, not a tuple, list or equation."""
    if isinstance(form, Union):
        return True
    if isinstance(form, Sequence):
        return form.brackets in ("(]", "[)") and len(form.items) == 2
    if isinstance(form, Relation):
        return form.ops[0] in ("<", ">", "<=", ">=", "!=", "notin") or (
            form.ops[0] == "in" and is_region(form.items[1])
        )
    return False


def unknowns(form: Form) -> frozenset[str]:
    """Return the names in a region's inequalities."""
    if isinstance(form, Union):
        return frozenset().union(*(unknowns(part) for part in form.parts))
    if not isinstance(form, Relation):
        return frozenset()
    return frozenset().union(*(symbols(item.expr) for item in form.items if isinstance(item, Value)))


def subjects(form: Form) -> list[Expr]:
    """Return the formulas, not mere names, in a region's inequalities."""
    if isinstance(form, Union):
        return [subject for part in form.parts for subject in subjects(part)]
    if not isinstance(form, Relation) or form.ops[0] not in FLIP:
        return []
    sides = [side for item in form.items if (side := without_unit(item)) is not None]
    try:
        subject = _find_unknown(sides)
    except NotARegion:
        return []
    return [subject] if subject.op != "sym" else []


def _intervals(form: Form, tuples: bool) -> list[Interval]:
    if isinstance(form, Value) and not form.unit:
        return [_point(form.expr)]
    if isinstance(form, Union):
        groups = [merge_intervals(_intervals(part, True)) for part in form.parts]
        if len({names for part in form.parts if (names := unknowns(part))}) > 1:
            raise NotARegion("conditions on several unknowns")
        if form.is_conjunction:
            intervals = groups[0]
            for following in groups[1:]:
                intervals = _intersection(intervals, following)
            return intervals
        return [interval for part in groups for interval in part]
    if isinstance(form, Sequence):
        return _sequence_intervals(form, tuples)
    if isinstance(form, Relation):
        return _relation_intervals(form)
    if isinstance(form, Words) and form.text in ("reals", "no solution"):
        return [Interval(MINUS_INFINITY, INFINITY, False, False)] if form.text == "reals" else []
    raise NotARegion(type(form).__name__)


def _point(expr: Expr) -> Interval:
    return Interval(expr, expr, True, True)


def _sequence_intervals(form: Sequence, tuples: bool) -> list[Interval]:
    if form.brackets in ("{}", ""):
        if not form.brackets and any(isinstance(item, Relation) and item.ops[0] not in _NAMING for item in form.items):
            raise NotARegion("a list of conditions")
        return [interval for item in form.items for interval in _intervals(item, False)]
    if len(form.items) != 2 or (form.brackets == "()" and not tuples) or form.brackets == "::":
        raise NotARegion("a tuple")
    low, high = form.items
    bounds = without_unit(low), without_unit(high)
    if bounds[0] is None or bounds[1] is None:
        raise NotARegion("an interval of no numbers")
    ends = [real_ball(end) for end in bounds if end is not None]
    if (
        ends[0] is not None
        and ends[1] is not None
        and (ends[0] > ends[1] or (ends[0] == ends[1] and form.brackets != "[]"))
    ):
        raise NotARegion("a pair of numbers, the larger first")
    return [_interval(bounds[0], bounds[1], form.brackets[0] == "[", form.brackets[1] == "]")]


def _interval(low: Expr, high: Expr, with_low: bool, with_high: bool) -> Interval:
    return Interval(low, high, with_low and not has(low, "const", "inf"), with_high and not has(high, "const", "inf"))


def _relation_intervals(form: Relation) -> list[Interval]:
    if form.ops == ("notin",):
        return _complement(_intervals(form.items[1], False))
    if form.ops[0] == "in":
        label = form.items[0]
        if not is_label(label) or (isinstance(label, Value) and not symbols(label.expr)):
            raise NotARegion("a region of a formula's values")
        return _intervals(form.items[1], True)
    if form.ops[0] == ":":
        return _intervals(form.items[1], True)
    sides = [side for item in form.items if (side := without_unit(item)) is not None]
    if len(sides) != len(form.items):
        if len(form.items) in (2, 3) and any(isinstance(item, Words) for item in form.items):
            return _named_relation(form)
        raise NotARegion("a relation between forms")
    unknown = _find_unknown(sides)
    intervals: list[Interval] | None = None
    for left, op, right in zip(sides, form.ops, sides[1:], strict=False):
        solution = merge_intervals(_solve(left, op, right, unknown))
        intervals = solution if intervals is None else _intersection(intervals, solution)
    return intervals or []


def _named_relation(form: Relation) -> list[Interval]:
    """Return an inequality's intervals if its subject is in words."""
    stand_in = Value(Expr("sym", name="?"))
    items = tuple(stand_in if isinstance(item, Words) else item for item in form.items)
    if sum(item is stand_in for item in items) != 1:
        raise NotARegion("a relation between words")
    return _relation_intervals(Relation(items, form.ops))


def _find_unknown(sides: list[Expr]) -> Expr:
    """Return an inequality's only variable, or a compound name such as f(x)."""
    names: set[str] = set().union(*(symbols(side) for side in sides))
    if len(names) == 1:
        return Expr("sym", name=next(iter(names)))
    whole = [side for side in sides if symbols(side)]
    if len(whole) == 1 and whole[0].op != "add":
        return whole[0]
    singles = [side for side in whole if side.op == "sym"]
    compounds = [side for side in whole if side.op != "sym"]
    if len(sides) == 3 and sides[1].op == "sym":
        return sides[1]
    if len(singles) == 1 and compounds and not any(singles[0].name in symbols(side) for side in compounds):
        return singles[0]
    raise NotARegion("an inequality in several unknowns")


def _solve(left: Expr, op: str, right: Expr, unknown: Expr) -> list[Interval]:
    if left == unknown or right == unknown:
        op, bound = (op, right) if left == unknown else (FLIP.get(op, op), left)
        return _ray(op, bound)
    if left.op == "fn" and left.name == "abs" and left.args[0] == unknown:
        return _solve_absolute(op, right)
    if right.op == "fn" and right.name == "abs" and right.args[0] == unknown:
        return _solve_absolute(FLIP.get(op, op), left)
    if unknown.op != "sym":
        raise UnsolvedRegion("an inequality that is not solved")
    inside = difference(left, right)
    at = [rename(inside, {unknown.name: num(value)}) for value in (0, 1, 2)]
    slope = difference(at[1], at[0])
    if not compare_expressions(slope, difference(at[2], at[1])).is_equal:
        raise UnsolvedRegion("an inequality that is not linear")
    sign = _to_float(slope)
    if sign == 0:
        raise NotARegion("an inequality without its unknown")
    return _ray(op if sign > 0 else FLIP.get(op, op), divide(neg(at[0]), slope))


def _ray(op: str, bound: Expr) -> list[Interval]:
    if op in ("<", "<="):
        return [Interval(MINUS_INFINITY, bound, False, op == "<=")]
    if op in (">", ">="):
        return [Interval(bound, INFINITY, op == ">=", False)]
    if op == "!=":
        return _complement([_point(bound)])
    if op == "=":
        return [_point(bound)]
    raise NotARegion(op)


def _solve_absolute(op: str, bound: Expr) -> list[Interval]:
    closed = op.endswith("=")
    if op in ("<", "<="):
        return [Interval(neg(bound), bound, closed, closed)]
    if op in (">", ">="):
        return [Interval(MINUS_INFINITY, neg(bound), False, closed), Interval(bound, INFINITY, closed, False)]
    raise NotARegion(op)


def _complement(intervals: list[Interval]) -> list[Interval]:
    gaps: list[Interval] = []
    low, with_low = MINUS_INFINITY, False
    for interval in merge_intervals(intervals):
        if interval.low != MINUS_INFINITY:
            gaps.append(Interval(low, interval.low, with_low, not interval.includes_low))
        low, with_low = interval.high, not interval.includes_high
    if low != INFINITY:
        gaps.append(Interval(low, INFINITY, with_low, False))
    return gaps


def _to_float(expr: Expr) -> float:
    if expr == INFINITY:
        return float("inf")
    if expr == MINUS_INFINITY:
        return float("-inf")
    ball = real_ball(expr)
    if ball is None:
        raise UnsolvedRegion("an end that is no real number")
    return float(ball)


def merge_intervals(intervals: list[Interval]) -> list[Interval]:
    """Sort intervals, drop empty ones and join touching ones; with parameters, only sort infinite ones.

    Raises `UnsolvedRegion` if there are too many, or an end is not real.
    """
    if len(intervals) > MAX_INTERVALS:
        raise UnsolvedRegion("too many pieces")
    if any(symbols(end) for interval in intervals for end in (interval.low, interval.high)):
        return sorted(intervals, key=lambda interval: (interval.low != MINUS_INFINITY, interval.high == INFINITY))
    keyed = []
    for interval in intervals:
        low, high = _to_float(interval.low), _to_float(interval.high)
        if low < high or (low == high and interval.includes_low and interval.includes_high):
            keyed.append((low, not interval.includes_low, high, interval))
    keyed.sort(key=lambda entry: entry[:3])
    merged: list[tuple[float, Interval]] = []
    for low, _, high, interval in keyed:
        if merged:
            top, last = merged[-1]
            if low < top or (low == top and (last.includes_high or interval.includes_low)):
                if high > top:
                    merged[-1] = (high, replace(last, high=interval.high, includes_high=interval.includes_high))
                elif high == top and interval.includes_high:
                    merged[-1] = (top, replace(last, includes_high=True))
                continue
        merged.append((high, interval))
    return [interval for _, interval in merged]


def _intersection(left_intervals: list[Interval], right_intervals: list[Interval]) -> list[Interval]:
    if any(symbols(end) for interval in (*left_intervals, *right_intervals) for end in (interval.low, interval.high)):
        return _symbolic_intersection(left_intervals, right_intervals)
    return _complement(_complement(left_intervals) + _complement(right_intervals))


def _symbolic_intersection(left_intervals: list[Interval], right_intervals: list[Interval]) -> list[Interval]:
    """Return the interval of a lower and an upper bound, else raise `UnsolvedRegion`."""
    if len(left_intervals) != 1 or len(right_intervals) != 1:
        raise UnsolvedRegion("an intersection with parameters")
    left, right = left_intervals[0], right_intervals[0]
    if left.low == MINUS_INFINITY and right.high == INFINITY:
        return [Interval(right.low, left.high, right.includes_low, left.includes_high)]
    if right.low == MINUS_INFINITY and left.high == INFINITY:
        return [Interval(left.low, right.high, left.includes_low, right.includes_high)]
    raise UnsolvedRegion("an intersection with parameters")
