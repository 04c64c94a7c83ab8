"""Compares form with form: chooses by their kinds; compares sequences, matrices and regions.

A `Matcher`'s methods return whether two forms are the same answer; in doubt, they return False and set ``doubtful``.
"""

from __future__ import annotations

import itertools

from curation.verify.answers.expr import INFINITY, Expr, choose_signs, has
from curation.verify.answers.forms import Form, Matrix, Relation, Sequence, Union, Value, Words
from curation.verify.answers.labels import left_name
from curation.verify.answers.matrices import components
from curation.verify.answers.question import AskedValues
from curation.verify.answers.regions import (
    Interval,
    NotARegion,
    UnsolvedRegion,
    is_region,
    parse_region,
    subjects,
    unknowns,
)
from curation.verify.answers.relations import Relations
from curation.verify.answers.values import Values, is_piecewise

MAX_LIST_ITEMS = 300
MAX_SIGNS = 5
"""Components of a tuple that may have a ± each."""


class Matcher(Relations, Values):
    """Compares one answer with one reference; use a new object for each pair."""

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
        if isinstance(reference, Value) and isinstance(answer, Words):
            return self._match_infinity(reference, answer)
        if isinstance(answer, Value) and isinstance(reference, Words):
            return self._match_infinity(answer, reference)
        return False

    def _match_infinity(self, value: Value, other: Words) -> bool:
        return not value.unit and value.expr == INFINITY and other.text == "infinity"

    def _match_values_or_signs(self, reference: Value, answer: Value) -> bool:
        if _has_sign(reference) or _has_sign(answer):
            return self._match_sequences(reference, answer)
        if self.match_values(reference, answer):
            return True
        return reference.unit == answer.unit and self._match_vectors(reference.expr, answer.expr)

    def _match_vectors(self, reference: Expr, answer: Expr) -> bool:
        """Return whether two sums of unit vectors, perhaps in two styles, are the same."""
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
        if len(left_items) == 1:
            return self.match(left_items[0], right_items[0])
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
            left_pieces, right_pieces = parse_region(reference, tuples=True), parse_region(answer, tuples=True)
        except NotARegion as error:
            self.doubtful |= isinstance(error, UnsolvedRegion)
            return None
        if len(left_pieces) != len(right_pieces):
            return False
        if not left_pieces and not isinstance(reference, Words) and not isinstance(answer, Words):
            return None  # two conditions that nothing fulfils are compared as they are written
        names = unknowns(reference), unknowns(answer)
        clash = bool(names[0] and names[1]) and (names[0] != names[1] or not self._same_subjects(reference, answer))
        pieces = list(zip(left_pieces, right_pieces, strict=True))
        ends: list[list[Form]] = [
            [Value(end) for piece in side for end in (piece.low, piece.high)] for side in (left_pieces, right_pieces)
        ]
        same = all(_same_kind(*pair) for pair in pieces) and self.match_parts(*ends)
        unlike = [left for left, right in pieces if _includes(left) != _includes(right)]
        if same and unlike:
            # if the question states which intervals it wants, the reference has those, and there is no doubt
            self.doubtful |= any(self.question.includes_ends not in _includes(piece) for piece in unlike)
            return False
        self.doubtful |= same and clash
        return same and not clash

    def _same_subjects(self, reference: Form, answer: Form) -> bool:
        """Return whether two regions are about the same formulas, if both have any."""
        left, right = subjects(reference), subjects(answer)
        return not left or not right or all(any(self.is_same(one, other) for other in right) for one in left)


def _same_kind(left: Interval, right: Interval) -> bool:
    """Return whether two intervals end in the same infinities."""
    ends = (left.low, right.low), (left.high, right.high)
    return all(one == other for one, other in ends if has(one, "const", "inf") or has(other, "const", "inf"))


def _includes(piece: Interval) -> tuple[bool, bool]:
    return piece.includes_low, piece.includes_high


def as_sequence(form: Form) -> Sequence | None:
    """Return a form as a sequence, a single answer as one item; None for a conjunction."""
    if isinstance(form, Sequence):
        return form
    if isinstance(form, Union):
        return Sequence(form.parts, "{}") if not form.is_conjunction else None
    return Sequence((form,))


def expand_signs(form: Sequence) -> list[Form]:
    """Return the items with ± expanded, without repetition in a set or after ±."""
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


def _as_vector(form: Form, other: Form) -> Form:
    """Return a sum of unit vectors as a tuple if the other form is a tuple or column."""
    if not isinstance(form, Value) or not isinstance(other, Sequence | Matrix):
        return form
    size = len(other.items) if isinstance(other, Sequence) else len(other.rows)
    vector = components(form.expr, size) if not form.unit else None
    return Sequence(tuple(Value(part) for part in vector), "()") if vector is not None else form


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
