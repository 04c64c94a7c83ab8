"""Compares form with form: sequences, matrices, regions, relations and others.

In doubt, a `Matcher`'s methods return False and set ``doubtful``.
"""

from __future__ import annotations

import itertools
from typing import TypeGuard

from curation.verify.answers.expr import (
    INFINITY,
    Expr,
    add,
    choose_signs,
    difference,
    divide,
    has,
    mul,
    neg,
    num,
    power,
    rename,
    symbols,
)
from curation.verify.answers.forms import Form, Matrix, Relation, Sequence, Union, Value, Words, without_unit
from curation.verify.answers.labels import labels_clash, left_name, with_argument_of
from curation.verify.answers.matrices import components
from curation.verify.answers.policy import rounds_to
from curation.verify.answers.question import AskedValues
from curation.verify.answers.regions import (
    FLIP,
    Interval,
    NotARegion,
    UnsolvedRegion,
    is_region,
    parse_region,
    subjects,
    unknowns,
)
from curation.verify.answers.samevalue import constant_value, values_at_trial_point, written_number
from curation.verify.answers.values import Values, is_piecewise

MAX_LIST_ITEMS = 300
MAX_SIGNS = 5
"""Max components of a tuple that have a ±."""


class Matcher(Values):
    """Compares an answer with a reference; use a new object per pair."""

    def match(self, reference: Form, answer: Form) -> bool:
        """Return whether two forms are the same answer."""
        if isinstance(reference, Words) and isinstance(answer, Words):
            return self.decide("words", bool(reference.text) and reference.text == answer.text)
        if isinstance(reference, Value) and isinstance(answer, Value):
            return self._match_values_or_signs(reference, answer)
        if isinstance(reference, Value) or isinstance(answer, Value):
            reference, answer = _as_vector(reference, answer), _as_vector(answer, reference)
            if is_piecewise(reference) or is_piecewise(answer):
                self.doubtful = True
                return False
        is_tuple_asked = self.question.values is AskedValues.TUPLE and _is_pair(reference) != _is_pair(answer)
        if is_tuple_asked and (is_region(reference) or is_region(answer)):
            self.doubtful = True
            return False
        if is_region(reference) or is_region(answer) or _is_real_line(reference) or _is_real_line(answer):
            regions_match = self._match_regions(reference, answer)
            if regions_match is not None:
                return regions_match
        if isinstance(reference, Union) and isinstance(answer, Union) and reference.is_conjunction:
            return answer.is_conjunction and self._match_unordered(list(reference.parts), list(answer.parts))
        if isinstance(reference, Relation) or isinstance(answer, Relation):
            return self.match_relations(reference, answer)
        if isinstance(reference, Matrix) or isinstance(answer, Matrix):
            return self._match_matrices(reference, answer)
        if isinstance(reference, Sequence) or isinstance(answer, Sequence):
            return self._match_sequences(reference, answer)
        value, words = (reference, answer) if isinstance(reference, Value) else (answer, reference)
        if not isinstance(value, Value) or not isinstance(words, Words):
            return False
        return not value.unit and value.expr == INFINITY and words.text == "infinity"

    def _match_values_or_signs(self, reference: Value, answer: Value) -> bool:
        if _has_sign(reference) or _has_sign(answer):
            return self._match_sequences(reference, answer)
        if self.match_values(reference, answer):
            return True
        return reference.unit == answer.unit and self._match_vectors(reference.expr, answer.expr)

    def _match_vectors(self, reference: Expr, answer: Expr) -> bool:
        left_parts, right_parts = components(reference), components(answer)
        if left_parts is None or right_parts is None:
            return False
        left_parts, right_parts = (
            components(reference, len(right_parts)) or left_parts,
            components(answer, len(left_parts)) or right_parts,
        )
        return len(left_parts) == len(right_parts) and all(
            self.is_same(left, right) for left, right in zip(left_parts, right_parts, strict=True)
        )

    # sequences

    def _match_sequences(self, reference: Form, answer: Form) -> bool:
        left, right = as_sequence(reference), as_sequence(answer)
        if left is None or right is None or max(len(left.items), len(right.items)) > MAX_LIST_ITEMS:
            self.doubtful = True
            return False
        if "::" in (left.brackets, right.brackets):
            return left.brackets == right.brackets and self._match_ratios(left, right)
        if (
            left.brackets == ""
            and right.brackets not in ("", "{}")
            and all(isinstance(i, Sequence) for i in left.items)
        ):
            right = Sequence((right,))
        elif (
            right.brackets == ""
            and left.brackets not in ("", "{}")
            and all(isinstance(i, Sequence) for i in right.items)
        ):
            left = Sequence((left,))
        free = left.brackets in ("", "{}") and right.brackets in ("", "{}")
        if not free and not _brackets_agree(left.brackets, right.brackets):
            return False
        if not free and self.question.values is AskedValues.INTERVAL and "" in (left.brackets, right.brackets):
            self.doubtful |= self._match_ordered(list(left.items), list(right.items))
            return False
        expanded = (expand_signs(left), expand_signs(right)) if free else (list(left.items), list(right.items))
        if free and self.question.values is AskedValues.TUPLE and _are_bare_values(left) and _are_bare_values(right):
            same = self._match_ordered(*expanded)
            self.doubtful |= not same and self._match_unordered(*expanded)
            return same
        if free:
            return self._match_unordered(*expanded)
        if _sign_inside(left) or _sign_inside(right):
            left_choices, right_choices = _sign_choices(left), _sign_choices(right)
            self.doubtful |= not (left_choices and right_choices)
            return bool(left_choices and right_choices) and self._match_unordered(left_choices, right_choices)
        return self._match_ordered(*expanded)

    def _match_ordered(self, left_items: list[Form], right_items: list[Form]) -> bool:
        return len(left_items) == len(right_items) and self.match_parts(left_items, right_items)

    def _match_unordered(self, left_items: list[Form], right_items: list[Form]) -> bool:
        left_names, right_names = _label_names(left_items), _label_names(right_items)
        unique = len(set(left_names)) == len(left_names) > 1
        if unique and sorted(left_names) == sorted(right_names):
            by_name = dict(zip(right_names, right_items, strict=True))
            return all(self.match(left, by_name[name]) for name, left in zip(left_names, left_items, strict=True))
        if left_names and right_names and (len(set(left_names)) == 1) != (len(set(right_names)) == 1):
            return False
        if len(left_items) != len(right_items):
            if self.question.values is AskedValues.ANY and len(right_items) == 1:
                self.doubtful |= any(self.match(left, right_items[0]) for left in left_items)
            return False
        unmatched = list(right_items)
        for left in left_items:
            at = next((position for position, right in enumerate(unmatched) if self.match(left, right)), None)
            if at is None:
                return False
            del unmatched[at]
        return True

    def _match_ratios(self, left: Sequence, right: Sequence) -> bool:
        if len(left.items) != len(right.items):
            return False
        pairs = [
            (left_item.expr, right_item.expr)
            for left_item, right_item in zip(left.items, right.items, strict=True)
            if isinstance(left_item, Value) and isinstance(right_item, Value) and left_item.unit == right_item.unit
        ]
        return len(pairs) == len(left.items) and self.proportional(pairs)

    def _match_matrices(self, reference: Form, answer: Form) -> bool:
        left, right = _as_rows(reference), _as_rows(answer)
        if left is None or right is None:
            return False
        if len(left) != len(right) or len(left[0]) != len(right[0]):
            if not (len(left) == len(right[0]) and len(right) == len(left[0]) and 1 in (len(left), len(right))):
                return False
            if isinstance(reference, Matrix) and isinstance(answer, Matrix):
                self.doubtful = True
                return False
            right = tuple(zip(*right, strict=True))
        cells = zip(itertools.chain(*left), itertools.chain(*right), strict=True)
        return all(self.match_values(Value(first), Value(second)) for first, second in cells)

    # regions

    def _match_regions(self, reference: Form, answer: Form) -> bool | None:
        try:
            left_intervals, right_intervals = parse_region(reference, tuples=True), parse_region(answer, tuples=True)
        except NotARegion as error:
            self.doubtful |= isinstance(error, UnsolvedRegion)
            return None
        if len(left_intervals) != len(right_intervals):
            return False
        if not left_intervals and not isinstance(reference, Words) and not isinstance(answer, Words):
            return None  # two conditions without solutions are compared as written
        names = unknowns(reference), unknowns(answer)
        clash = bool(names[0] and names[1]) and (names[0] != names[1] or not self._same_subjects(reference, answer))
        pairs = list(zip(left_intervals, right_intervals, strict=True))
        ends: list[list[Form]] = [
            [Value(end) for interval in side for end in (interval.low, interval.high)]
            for side in (left_intervals, right_intervals)
        ]
        same = all(_same_kind(*pair) for pair in pairs) and self.match_parts(*ends)
        unlike = [left for left, right in pairs if _includes(left) != _includes(right)]
        if same and unlike:
            # no doubt if the question states which intervals it wants, and the reference has those
            self.doubtful |= any(self.question.includes_ends not in _includes(interval) for interval in unlike)
            return False
        self.doubtful |= same and clash
        return same and not clash

    def _same_subjects(self, reference: Form, answer: Form) -> bool:
        left, right = subjects(reference), subjects(answer)
        return (
            not left
            or not right
            or all(any(self.is_same(left_subject, right_subject) for right_subject in right) for left_subject in left)
        )

    # relations

    def match_relations(self, reference: Form, answer: Form) -> bool:
        """Return `match` of forms, at least one a relation."""
        left, right = _range_of(reference), _range_of(answer)
        if left and right:
            return self.decide("range", all(self.match(*ends) for ends in zip(left, right, strict=True)))
        if any(isinstance(side, Relation) and side.ops == ("to",) for side in (reference, answer)):
            sides = [_as_ratio(side) for side in (reference, answer)]
            return all(isinstance(side, Value) and side.unit == "ratio" for side in sides) and self.match(*sides)
        if _is_approximated(reference) or _is_approximated(answer):
            return self._match_approximated(reference, answer)
        if isinstance(reference, Relation) and isinstance(answer, Relation):
            return self._match_two_relations(reference, answer)
        if isinstance(answer, Relation):
            return (
                left_name(answer) is not None
                and self._not_naming(answer, reference)
                and self.match(reference, answer.items[-1])
            )
        assert isinstance(reference, Relation)
        names = left_name(reference) is not None and set(reference.ops) <= {"=", ":", "in"}
        if names and self._not_naming(reference, answer) and self.match(reference.items[-1], answer):
            return True
        if isinstance(answer, Value):
            return self._solves(reference, answer)
        return isinstance(answer, Sequence) and answer.brackets == "" and self._same_order(reference, answer)

    def _match_approximated(self, reference: Form, answer: Form) -> bool:
        """Return whether the values before ≈ are the same, and those after it agree."""
        sides = [side.items if _is_approximated(side) else (side,) for side in (reference, answer)]
        if not self.match(sides[0][0], sides[1][0]):
            return False
        same = len(sides[0]) != len(sides[1]) or self.match(sides[0][1], sides[1][1])
        return same or all(_is_rounded_from(*side) for side in sides)

    def _not_naming(self, relation: Relation, form: Form) -> bool:
        """Return whether a form lacks the variable on the left side."""
        left = relation.items[0]
        if isinstance(left, Value) and left.expr.op == "sym" and isinstance(form, Value):
            return left.expr.name not in symbols(form.expr)
        return True

    def _match_two_relations(self, reference: Relation, answer: Relation) -> bool:
        names = left_name(reference), left_name(answer)
        is_naming = None not in names and set(reference.ops + answer.ops) <= {"=", ":", "in"}
        if is_naming:
            renamed = with_argument_of(reference, answer)
            if self.match(reference.items[-1], renamed.items[-1]):
                clash = names[0] != left_name(renamed) and labels_clash(reference, renamed)
                clash |= not (self._steps_agree(reference, renamed) and self._steps_agree(renamed, reference))
                if not clash:
                    return True
                self.doubtful = True
        return self._match_equations(reference, answer)

    def _steps_agree(self, first: Relation, second: Relation) -> bool:
        """Return whether each b in a = b = c equals c or is in the second chain."""
        if min(len(first.items), len(second.items)) < 3:
            return True
        return all(
            any(self.match(step, item) for item in (first.items[-1], *second.items)) for step in first.items[1:-1]
        )

    def _match_chains(self, reference: Relation, answer: Relation) -> bool:
        """Return whether two chains are the same, or reversed: a < b, b > a."""
        backwards = Relation(tuple(reversed(answer.items)), tuple(FLIP.get(op, op) for op in reversed(answer.ops)))
        for candidate in (answer, backwards):
            if reference.ops == candidate.ops and all(
                self.match(left, right) for left, right in zip(reference.items, candidate.items, strict=True)
            ):
                return True
        return False

    def _match_equations(self, reference: Relation, answer: Relation) -> bool:
        """Return whether L - R is a multiple of l - r, of the right sign for inequalities."""
        left_sides, right_sides = _sides(reference), _sides(answer)
        if left_sides is None or right_sides is None:
            return self._match_chains(reference, answer)
        op, answer_op = reference.ops[0], answer.ops[0]
        if op != answer_op and op != FLIP.get(answer_op):
            return False
        if op not in FLIP:
            return False
        left, right = difference(*left_sides), difference(*right_sides)
        factor = self._factor_sign(left, right)
        if factor is None and op == "=":
            return self.decide("equation", self._factor_sign(numerator(left)[0], numerator(right)[0]) is not None)
        if factor is None:
            return False
        if op in ("=", "!="):
            return self.decide("equation", True)
        return self.decide("inequality", (factor > 0) == (op == answer_op))

    def _factor_sign(self, left: Expr, right: Expr) -> int | None:
        """Return the sign of the constant c ≠ 0 with left = c·right everywhere."""
        if not symbols(left) or symbols(left) != symbols(right):
            return None
        values = values_at_trial_point(left, right)
        if values is None:
            self.doubtful = True
            return None
        first, second, sign = values
        return sign if self.is_proved(mul(left, second), mul(right, first)) else None

    def _solves(self, reference: Relation, answer: Value) -> bool:
        """Return whether an expression solves a linear equation for the variable it leaves out."""
        sides = _sides(reference)
        if sides is None or reference.ops != ("=",):
            return False
        inside = difference(*sides)
        left_out = symbols(inside) - symbols(answer.expr)
        if len(left_out) != 1 or not symbols(answer.expr) or symbols(answer.expr) - symbols(inside):
            return False
        name = next(iter(left_out))
        at = [rename(inside, {name: num(value)}) for value in (0, 1, 2)]
        slope = difference(at[1], at[0])
        linear = self.is_proved(slope, difference(at[2], at[1])) and not self.is_proved(slope, num(0))
        is_solution = linear and self.is_proved(answer.expr, divide(neg(at[0]), slope))
        return self.decide("equation", is_solution)

    def _same_order(self, reference: Relation, answer: Sequence) -> bool:
        """Return whether a list follows a chain: b < a < d and b, a, d."""
        if set(reference.ops) not in ({"<"}, {">"}) or not 3 <= len(answer.items) == len(reference.items):
            return False
        return all(self.match(left, right) for left, right in zip(reference.items, answer.items, strict=True))

    def proportional(self, pairs: list[tuple[Expr, Expr]]) -> bool:
        """Return whether a:b:c and d:e:f are one ratio."""
        first = pairs[0]
        return all(
            self.is_proved(mul(left, first[1]), mul(right, first[0])) for left, right in pairs[1:]
        ) and not self.is_proved(first[1], num(0))


def _same_kind(left: Interval, right: Interval) -> bool:
    """Return whether two intervals have the same infinite ends."""
    ends = (left.low, right.low), (left.high, right.high)
    return all(
        left_end == right_end
        for left_end, right_end in ends
        if has(left_end, "const", "inf") or has(right_end, "const", "inf")
    )


def _includes(interval: Interval) -> tuple[bool, bool]:
    return interval.includes_low, interval.includes_high


def as_sequence(form: Form) -> Sequence | None:
    """Return a form as a sequence, a single answer as one item; None for a conjunction."""
    if isinstance(form, Sequence):
        return form
    if isinstance(form, Union):
        return Sequence(form.parts, "{}") if not form.is_conjunction else None
    return Sequence((form,))


def expand_signs(form: Sequence) -> list[Form]:
    """Return the items with ± expanded, without repetitions in sets and after ±."""
    items: list[Form] = []
    for item in form.items:
        if isinstance(item, Value) and _has_sign(item):
            items.extend(Value(signed, item.unit) for signed in choose_signs(item.expr))
        elif isinstance(item, Relation) and isinstance(item.items[-1], Value) and _has_sign(item.items[-1]):
            signs = [Value(signed, item.items[-1].unit) for signed in choose_signs(item.items[-1].expr)]
            items.extend(Relation((*item.items[:-1], signed), item.ops) for signed in signs)
        elif isinstance(item, Sequence) and _sign_inside(item):
            items.extend(_sign_choices(item))
        elif isinstance(item, Sequence) and item.brackets in ("", "{}") and form.brackets == "":
            items.extend(expand_signs(item))
        else:
            items.append(item)
    if len(items) != len(form.items) or form.brackets == "{}" or all(isinstance(item, Sequence) for item in items):
        items = list(dict.fromkeys(items))
    return items


def _sign_choices(form: Sequence) -> list[Form]:
    options = [
        [Value(signed, item.unit) for signed in choose_signs(item.expr)] if isinstance(item, Value) else [item]
        for item in form.items
    ]
    if sum(len(option) > 1 for option in options) > MAX_SIGNS:
        return []
    return list(dict.fromkeys(Sequence(tuple(choice), form.brackets) for choice in itertools.product(*options)))


def _as_vector(form: Form, counterpart: Form) -> Form:
    """Return a sum of unit vectors as a tuple next to a tuple or column."""
    if not isinstance(form, Value) or not isinstance(counterpart, Sequence | Matrix):
        return form
    size = len(counterpart.items) if isinstance(counterpart, Sequence) else len(counterpart.rows)
    vector = components(form.expr, size) if not form.unit else None
    return Sequence(tuple(Value(coordinate) for coordinate in vector), "()") if vector is not None else form


def _is_pair(form: Form) -> bool:
    return isinstance(form, Sequence) and form.brackets == "()" and len(form.items) == 2


def _are_bare_values(form: Sequence) -> bool:
    return form.brackets == "" and len(form.items) > 1 and all(isinstance(item, Value) for item in form.items)


def _is_real_line(form: Form) -> bool:
    return isinstance(form, Words) and form.text == "reals"


def _has_sign(value: Value) -> bool:
    return has(value.expr, "pm") or has(value.expr, "mp")


def _sign_inside(form: Sequence) -> bool:
    return any(isinstance(item, Value) and _has_sign(item) for item in form.items)


def _brackets_agree(left: str, right: str) -> bool:
    if left == right or "" in (left, right):
        return "{}" not in (left, right)
    return False


def _label_names(forms: list[Form]) -> list[str]:
    names = [left_name(form) for form in forms]
    return [name for name in names if name is not None] if all(names) else []


def _as_rows(form: Form) -> tuple[tuple[Expr, ...], ...] | None:
    if isinstance(form, Matrix):
        return form.rows
    if isinstance(form, Sequence) and form.brackets in ("()", "[]", ""):
        lines = [_as_rows(item) for item in form.items if isinstance(item, Sequence) and item.brackets]
        if lines and len(lines) == len(form.items):
            rows = [tuple(cell for row in line for cell in row) for line in lines if line is not None]
            return tuple(rows) if len({len(row) for row in rows}) == 1 and len(rows) == len(lines) else None
        cells = [item.expr for item in form.items if isinstance(item, Value) and not item.unit]
        if len(cells) == len(form.items):
            return tuple((cell,) for cell in cells)
    return None


def numerator(expr: Expr) -> tuple[Expr, Expr]:
    """Return numerator and denominator, both without quotients."""
    if expr.op == "pow" and expr.args[1].op == "num" and expr.args[1].value < 0:
        top, bottom = numerator(expr.args[0])
        return power(bottom, neg(expr.args[1])), power(top, neg(expr.args[1]))
    if expr.op not in ("add", "mul"):
        return expr, num(1)
    top, bottom = numerator(expr.args[0])
    for arg in expr.args[1:]:
        next_top, next_bottom = numerator(arg)
        if expr.op == "mul":
            top, bottom = mul(top, next_top), mul(bottom, next_bottom)
        elif bottom == next_bottom:
            top = add(top, next_top)
        else:
            top, bottom = add(mul(top, next_bottom), mul(next_top, bottom)), mul(bottom, next_bottom)
    return top, bottom


def _is_approximated(form: Form) -> TypeGuard[Relation]:
    return isinstance(form, Relation) and form.ops == ("~=",)


def _is_rounded_from(exact: Form, rounded: Form) -> bool:
    if not isinstance(exact, Value) or not isinstance(rounded, Value):
        return False
    value, number = constant_value(exact.expr), written_number(rounded.expr)
    shares = (value, 100 * value) if value is not None else ()
    return number is not None and any(rounds_to(share, number) for share in shares)


def _range_of(form: Form) -> tuple[Form, Form] | None:
    """Return the ends of "3 to 5" or "3-5"."""
    if isinstance(form, Relation) and form.ops == ("to",):
        return form.items[0], form.items[1]
    if isinstance(form, Value) and form.expr.op == "add" and len(form.expr.args) == 2:
        low, high = form.expr.args
        if low.op == high.op == "num" and 0 <= low.value < -high.value:
            return Value(low), Value(neg(high), form.unit)
    return None


def _as_ratio(form: Form) -> Form:
    """Return "3 to 4" as 3:4."""
    if isinstance(form, Relation) and isinstance(form.items[0], Value) and isinstance(form.items[1], Value):
        return Value(divide(form.items[0].expr, form.items[1].expr), "ratio")
    return form


def _sides(form: Relation) -> tuple[Expr, Expr] | None:
    first, second = without_unit(form.items[0]), without_unit(form.items[-1])
    return (first, second) if len(form.items) == 2 and first is not None and second is not None else None
