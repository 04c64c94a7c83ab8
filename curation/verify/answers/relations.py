"""Equations and inequalities: proportional equations, chains, orders, ranges, approximations."""

from __future__ import annotations

from typing import TypeGuard

from curation.verify.answers.expr import (
    Expr,
    add,
    difference,
    divide,
    mul,
    neg,
    num,
    power,
    rename,
    symbols,
)
from curation.verify.answers.forms import Form, Relation, Sequence, Value, without_unit
from curation.verify.answers.labels import labels_clash, left_name, with_argument_of
from curation.verify.answers.policy import rounds_to
from curation.verify.answers.samevalue import constant_value, values_at_trial_point, written_number
from curation.verify.answers.values import ComparisonState

_FLIP = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}


def right_side(form: Relation) -> Form:
    """Return the last member of a chain of equals."""
    return form.items[-1]


class Relations(ComparisonState):
    """Compares relations, for `matching.Matcher`."""

    def match_relations(self, reference: Form, answer: Form) -> bool:
        """Return whether two forms, at least one a relation, are the same answer."""
        ranges = _range_of(reference), _range_of(answer)
        if ranges[0] and ranges[1]:
            return self._same_ends(ranges[0], ranges[1])
        if _is_range(reference) or _is_range(answer):
            return self._match_ratio_in_words(reference, answer)
        if _is_approximated(reference) or _is_approximated(answer):
            return self._match_approximated(reference, answer)
        if isinstance(reference, Relation) and isinstance(answer, Relation):
            return self._match_two_relations(reference, answer)
        if isinstance(answer, Relation):
            return (
                left_name(answer) is not None
                and self._not_naming(answer, reference)
                and self.match(reference, right_side(answer))
            )
        assert isinstance(reference, Relation)
        names = left_name(reference) is not None and set(reference.ops) <= {"=", ":", "in"}
        if names and self._not_naming(reference, answer) and self.match(right_side(reference), answer):
            return True
        if isinstance(answer, Value):
            return self._solves(reference, answer)
        if isinstance(answer, Sequence) and answer.brackets == "":
            return self._same_order(reference, answer)
        return False

    def _match_approximated(self, reference: Form, answer: Form) -> bool:
        """Return whether the values before ≈ are the same, and those after it agree."""
        sides = [side.items if _is_approximated(side) else (side,) for side in (reference, answer)]
        if not self.match(sides[0][0], sides[1][0]):
            return False
        same = len(sides[0]) != len(sides[1]) or self.match(sides[0][1], sides[1][1])
        return same or all(_is_rounded_from(*side) for side in sides)

    def _same_ends(self, left: tuple[Form, Form], right: tuple[Form, Form]) -> bool:
        return self.decide("range", self.match(left[0], right[0]) and self.match(left[1], right[1]))

    def _match_ratio_in_words(self, reference: Form, answer: Form) -> bool:
        """Return whether "3 to 4" and 3:4 are the same ratio."""
        sides = [_as_ratio(side) if _is_range(side) else side for side in (reference, answer)]
        left, right = sides
        if not isinstance(left, Value) or not isinstance(right, Value) or "ratio" not in (left.unit, right.unit):
            return False
        if {left.unit, right.unit} != {"ratio"}:
            return False
        return self.match(left, right)

    def _not_naming(self, relation: Relation, other: Form) -> bool:
        """Return whether ``other`` does not contain the variable that is the left side."""
        left = relation.items[0]
        if isinstance(left, Value) and left.expr.op == "sym" and isinstance(other, Value):
            return left.expr.name not in symbols(other.expr)
        return True

    def _match_two_relations(self, reference: Relation, answer: Relation) -> bool:
        names = left_name(reference), left_name(answer)
        is_naming = None not in names and set(reference.ops + answer.ops) <= {"=", ":", "in"}
        if is_naming:
            other = with_argument_of(reference, answer)
            if self.match(right_side(reference), right_side(other)):
                clash = names[0] != left_name(other) and labels_clash(reference, other)
                clash |= not (self._steps_agree(reference, other) and self._steps_agree(other, reference))
                if not clash:
                    return True
                self.doubtful = True
        if len(reference.ops) > 1 or len(answer.ops) > 1:
            return self._match_chains(reference, answer)
        return self._match_equations(reference, answer)

    def _steps_agree(self, chain: Relation, other: Relation) -> bool:
        """Return whether each b in a = b = c equals c or is in the other chain."""
        if min(len(chain.items), len(other.items)) < 3:
            return True
        return all(
            any(self.match(step, item) for item in (chain.items[-1], *other.items)) for step in chain.items[1:-1]
        )

    def _match_chains(self, reference: Relation, answer: Relation) -> bool:
        """Return whether two chains are the same, perhaps reversed: a < b ≤ c and c ≥ b > a."""
        if len(reference.items) != len(answer.items):
            return False
        backwards = Relation(tuple(reversed(answer.items)), tuple(_FLIP.get(op, op) for op in reversed(answer.ops)))
        for other in (answer, backwards):
            if reference.ops == other.ops and all(
                self.match(left, right) for left, right in zip(reference.items, other.items, strict=True)
            ):
                return True
        return False

    def _match_equations(self, reference: Relation, answer: Relation) -> bool:
        """Return whether L - R is a multiple of l - r, of the right sign for inequalities."""
        left_sides, right_sides = _sides(reference), _sides(answer)
        if left_sides is None or right_sides is None:
            return self._match_chains(reference, answer)
        op, other = reference.ops[0], answer.ops[0]
        if op != other and op != _FLIP.get(other):
            return False
        if op not in _FLIP:
            return False
        left, right = difference(*left_sides), difference(*right_sides)
        factor = self._factor_sign(left, right)
        if factor is None and op == "=":
            return self.decide("equation", self._factor_sign(numerator(left)[0], numerator(right)[0]) is not None)
        if factor is None:
            return False
        if op in ("=", "!="):
            return self.decide("equation", True)
        return self.decide("inequality", (factor > 0) == (op == other))

    def _factor_sign(self, left: Expr, right: Expr) -> int | None:
        """Return the sign of the constant c ≠ 0 with left = c·right everywhere, or None."""
        if not symbols(left) or symbols(left) != symbols(right):
            return None
        values = values_at_trial_point(left, right)
        if values is None:
            self.doubtful = True
            return None
        first, second, sign = values
        return sign if self.is_proved(mul(left, second), mul(right, first)) else None

    def _solves(self, reference: Relation, answer: Value) -> bool:
        """Return whether an expression solves an equation linear in the variable that it leaves out."""
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
        """Return whether a chain and a list have the same order: b < a < d and b, a, d."""
        if (
            set(reference.ops) not in ({"<"}, {">"})
            or len(answer.items) != len(reference.items)
            or len(answer.items) < 3
        ):
            return False
        return all(self.match(left, right) for left, right in zip(reference.items, answer.items, strict=True))

    def proportional(self, pairs: list[tuple[Expr, Expr]]) -> bool:
        """Return whether a:b:c and d:e:f are one ratio."""
        first = pairs[0]
        return all(
            self.is_proved(mul(left, first[1]), mul(right, first[0])) for left, right in pairs[1:]
        ) and not self.is_proved(first[1], num(0))


def numerator(expr: Expr) -> tuple[Expr, Expr]:
    """Return an expression's numerator and denominator, both without quotients."""
    if expr.op == "pow" and expr.args[1].op == "num" and expr.args[1].value < 0:
        top, below = numerator(expr.args[0])
        return power(below, neg(expr.args[1])), power(top, neg(expr.args[1]))
    if expr.op not in ("add", "mul"):
        return expr, num(1)
    top, below = numerator(expr.args[0])
    for arg in expr.args[1:]:
        other_top, other_below = numerator(arg)
        if expr.op == "mul":
            top, below = mul(top, other_top), mul(below, other_below)
        elif below == other_below:
            top = add(top, other_top)
        else:
            top, below = add(mul(top, other_below), mul(other_top, below)), mul(below, other_below)
    return top, below


def _is_approximated(form: Form) -> TypeGuard[Relation]:
    return isinstance(form, Relation) and form.ops == ("~=",)


def _is_rounded_from(exact: Form, rounded: Form) -> bool:
    """Return whether one number is another rounded, perhaps in per cent."""
    if not isinstance(exact, Value) or not isinstance(rounded, Value):
        return False
    value, number = constant_value(exact.expr), written_number(rounded.expr)
    shares = (value, 100 * value) if value is not None else ()
    return number is not None and any(rounds_to(share, number) for share in shares)


def _is_range(form: Form) -> bool:
    return isinstance(form, Relation) and form.ops == ("to",)


def _range_of(form: Form) -> tuple[Form, Form] | None:
    """Return the ends of "3 to 5" or "3-5", or None."""
    if isinstance(form, Relation) and form.ops == ("to",):
        return form.items[0], form.items[1]
    if isinstance(form, Value) and form.expr.op == "add" and len(form.expr.args) == 2:
        low, high = form.expr.args
        if low.op == high.op == "num" and 0 <= low.value < -high.value:
            return Value(low), Value(neg(high), form.unit)
    return None


def _as_ratio(form: Form) -> Form:
    if isinstance(form, Relation) and isinstance(form.items[0], Value) and isinstance(form.items[1], Value):
        return Value(divide(form.items[0].expr, form.items[1].expr), "ratio")
    return form


def _sides(form: Relation) -> tuple[Expr, Expr] | None:
    first, second = without_unit(form.items[0]), without_unit(form.items[-1])
    return (first, second) if len(form.items) == 2 and first is not None and second is not None else None
