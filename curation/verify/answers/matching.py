"""Form against form: the dispatcher, sequences, and the order in which readings are tried.

A `Matcher` holds what is the same for one pair: the policy, whether anything was doubtful, and the tier that
decided. Its methods say whether two forms are the same answer; in doubt they say no and set ``doubtful``.
"""

from __future__ import annotations

import itertools

from curation.verify.answers.expr import Expr, choose_signs, has
from curation.verify.answers.forms import Form, Matrix, Relation, Sequence, Union, Value, Words
from curation.verify.answers.pieces import equals_cases, is_piecewise
from curation.verify.answers.regions import Interval, NotARegion, is_region, parse_region
from curation.verify.answers.relations import Relations
from curation.verify.answers.values import Values
from curation.verify.answers.vectors import components

MAX_LIST_ITEMS = 300
MAX_SIGNS = 5
"""Components of a tuple that may have a ± each."""


class Matcher(Relations, Values):
    """The comparison of one answer with one reference; use a new object for each pair."""

    def match(self, reference: Form, answer: Form) -> bool:
        """Return whether two forms are the same answer."""
        if isinstance(reference, Words) and isinstance(answer, Words):
            return self.decide("words", bool(reference.text) and reference.text == answer.text)
        if isinstance(reference, Value) and isinstance(answer, Value):
            return self._value_or_signs(reference, answer)
        if isinstance(reference, Value) or isinstance(answer, Value):
            reference, answer = _as_vector(reference, answer), _as_vector(answer, reference)
            for value, cases in ((reference, answer), (answer, reference)):
                if isinstance(value, Value) and isinstance(cases, Sequence) and is_piecewise(cases):
                    return self.decide("by cases", equals_cases(value.expr, cases))
        if is_region(reference) or is_region(answer) or _is_line(reference) or _is_line(answer):
            found = self._regions(reference, answer)
            if found is not None:
                return found
        if isinstance(reference, Relation) or isinstance(answer, Relation):
            return self.match_relations(reference, answer)
        if isinstance(reference, Matrix) or isinstance(answer, Matrix):
            return self._matrices(reference, answer)
        if isinstance(reference, Sequence) or isinstance(answer, Sequence):
            return self._sequences(reference, answer)
        if isinstance(reference, Value) and isinstance(answer, Words):
            return self._infinite(reference, answer)
        if isinstance(answer, Value) and isinstance(reference, Words):
            return self._infinite(answer, reference)
        return False

    def _infinite(self, value: Value, other: Words) -> bool:
        return value.expr.op == "const" and value.expr.name == "inf" and other.text == "infinity"

    def _value_or_signs(self, reference: Value, answer: Value) -> bool:
        if _has_sign(reference) or _has_sign(answer):
            return self._sequences(reference, answer)
        if self.match_values(reference, answer):
            return True
        return self._vectors(reference.expr, answer.expr)

    def _vectors(self, reference: Expr, answer: Expr) -> bool:
        """Return whether two sums of unit vectors, perhaps written in two styles, are the same."""
        one, two = components(reference), components(answer)
        if one is None or two is None:
            return False
        one, two = components(reference, len(two)) or one, components(answer, len(one)) or two
        return len(one) == len(two) and all(self.is_same(left, right) for left, right in zip(one, two, strict=True))

    # sequences

    def _sequences(self, reference: Form, answer: Form) -> bool:
        one, two = as_sequence(reference), as_sequence(answer)
        if one is None or two is None or max(len(one.items), len(two.items)) > MAX_LIST_ITEMS:
            return False
        if "::" in (one.brackets, two.brackets):
            return one.brackets == two.brackets and self._ratios(one, two)
        if one.brackets == "" and two.brackets not in ("", "{}") and all(isinstance(i, Sequence) for i in one.items):
            two = Sequence((two,))
        elif two.brackets == "" and one.brackets not in ("", "{}") and all(isinstance(i, Sequence) for i in two.items):
            one = Sequence((one,))
        free = one.brackets in ("", "{}") and two.brackets in ("", "{}")
        if not free and not _brackets_agree(one.brackets, two.brackets):
            return False
        expanded = (expand_signs(one), expand_signs(two)) if free else (list(one.items), list(two.items))
        if free:
            return self._unordered(*expanded)
        if _sign_inside(one) or _sign_inside(two):
            ones, twos = _sign_choices(one), _sign_choices(two)
            return bool(ones and twos) and self._unordered(ones, twos)
        return self._ordered(*expanded)

    def _ordered(self, ones: list[Form], twos: list[Form]) -> bool:
        return len(ones) == len(twos) and all(self.match(one, two) for one, two in zip(ones, twos, strict=True))

    def _unordered(self, ones: list[Form], twos: list[Form]) -> bool:
        names_one, names_two = _names(ones), _names(twos)
        unique = len(set(names_one)) == len(names_one) > 1
        if unique and sorted(names_one) == sorted(names_two):
            by_name = dict(zip(names_two, twos, strict=True))
            return all(self.match(one, by_name[name]) for name, one in zip(names_one, ones, strict=True))
        if names_one and names_two and (len(set(names_one)) == 1) != (len(set(names_two)) == 1):
            return False
        if len(ones) != len(twos):
            return False
        if len(ones) == 1:
            return self.match(ones[0], twos[0])
        left = list(twos)
        for one in ones:
            at = next((position for position, two in enumerate(left) if self.match(one, two)), None)
            if at is None:
                return False
            del left[at]
        return True

    def _ratios(self, one: Sequence, two: Sequence) -> bool:
        if len(one.items) != len(two.items):
            return False
        pairs = [
            (first.expr, second.expr)
            for first, second in zip(one.items, two.items, strict=True)
            if isinstance(first, Value) and isinstance(second, Value)
        ]
        return len(pairs) == len(one.items) and self.proportional(pairs)

    def _matrices(self, reference: Form, answer: Form) -> bool:
        one, two = _as_rows(reference), _as_rows(answer)
        if one is None or two is None:
            return False
        if len(one) != len(two) or len(one[0]) != len(two[0]):
            if not (len(one) == len(two[0]) and len(two) == len(one[0]) and 1 in (len(one), len(two))):
                return False
            if isinstance(reference, Matrix) and isinstance(answer, Matrix):
                self.doubtful = True
                return False
            two = tuple(zip(*two, strict=True))
        cells = zip(itertools.chain(*one), itertools.chain(*two), strict=True)
        return all(self.match_values(Value(first), Value(second)) for first, second in cells)

    # regions

    def _regions(self, reference: Form, answer: Form) -> bool | None:
        try:
            ones, twos = parse_region(reference, tuples=True), parse_region(answer, tuples=True)
        except NotARegion:
            return None
        if len(ones) != len(twos):
            return False
        return all(self._same_piece(one, two) for one, two in zip(ones, twos, strict=True))

    def _same_piece(self, one: Interval, two: Interval) -> bool:
        ends = self._same_end(one.low, two.low) and self._same_end(one.high, two.high)
        if ends and (one.includes_low, one.includes_high) != (two.includes_low, two.includes_high):
            self.doubtful = True
            return False
        return ends

    def _same_end(self, one: Expr, two: Expr) -> bool:
        if has(one, "const", "inf") or has(two, "const", "inf"):
            return one == two
        return self.match_values(Value(one), Value(two))


def as_sequence(form: Form) -> Sequence | None:
    """Return a form as a sequence; a single answer becomes a list of one. None where the conditions hold jointly."""
    if isinstance(form, Sequence):
        return form
    if isinstance(form, Union):
        return Sequence(form.parts) if not form.is_conjunction else None
    return Sequence((form,))


def expand_signs(form: Sequence) -> list[Form]:
    """Return the items with ± written out. In a set, or where ± occurs, each item comes once."""
    found: list[Form] = []
    for item in form.items:
        if isinstance(item, Value) and _has_sign(item):
            found.extend(Value(chosen, item.unit) for chosen in choose_signs(item.expr))
        elif isinstance(item, Relation) and isinstance(item.items[-1], Value) and _has_sign(item.items[-1]):
            found.extend(Value(chosen) for chosen in choose_signs(item.items[-1].expr))
        elif isinstance(item, Sequence) and _sign_inside(item):
            found.extend(_sign_choices(item))
        elif isinstance(item, Sequence) and item.brackets in ("", "{}") and form.brackets == "":
            found.extend(expand_signs(item))
        else:
            found.append(item)
    if len(found) != len(form.items) or form.brackets == "{}" or all(isinstance(item, Sequence) for item in found):
        found = list(dict.fromkeys(found))
    return found


def _sign_choices(form: Sequence) -> list[Form]:
    options = [
        [Value(chosen, item.unit) for chosen in choose_signs(item.expr)] if isinstance(item, Value) else [item]
        for item in form.items
    ]
    if sum(len(option) > 1 for option in options) > MAX_SIGNS:
        return []
    return list(dict.fromkeys(Sequence(tuple(choice), form.brackets) for choice in itertools.product(*options)))


def _as_vector(form: Form, other: Form) -> Form:
    """Return a sum of unit vectors beside a tuple or a column as the tuple that it is."""
    if not isinstance(form, Value) or not isinstance(other, Sequence | Matrix):
        return form
    size = len(other.items) if isinstance(other, Sequence) else len(other.rows)
    found = components(form.expr, size)
    return Sequence(tuple(Value(part) for part in found), "()") if found is not None else form


def _is_line(form: Form) -> bool:
    return isinstance(form, Words) and form.text == "reals"


def _has_sign(value: Value) -> bool:
    return has(value.expr, "pm") or has(value.expr, "mp")


def _sign_inside(form: Sequence) -> bool:
    return any(isinstance(item, Value) and _has_sign(item) for item in form.items)


def _brackets_agree(one: str, two: str) -> bool:
    if one == two or "" in (one, two):
        return "{}" not in (one, two)
    return False


def _names(forms: list[Form]) -> list[str]:
    from curation.verify.answers.relations import left_name

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
        cells = [item.expr for item in form.items if isinstance(item, Value)]
        if len(cells) == len(form.items):
            return tuple((cell,) for cell in cells)
    return None
