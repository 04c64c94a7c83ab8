"""The state that the parts of the matcher share, and formulas against families: with parameters, and by cases."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from curation.verify.answers.constants import difference
from curation.verify.answers.expr import Expr, add, divide, has, mul, num, rename, sym, symbols, walk
from curation.verify.answers.forms import Form, Sequence, Value, names_in
from curation.verify.answers.policy import ApproximationPolicy
from curation.verify.answers.question import NOTHING_ASKED, QuestionForm
from curation.verify.answers.samevalue import Equivalence, compare_expressions, constant_value


class ComparisonState:
    """The state of one comparison. ``method`` names the tier that decided last, ``doubtful`` asks for a second look."""

    def __init__(
        self,
        policy: ApproximationPolicy,
        arbitrary_names: frozenset[str] = frozenset(),
        question: QuestionForm = NOTHING_ASKED,
    ) -> None:
        self.policy = policy
        self.question = question
        self.arbitrary_names = arbitrary_names
        """Names that a text calls arbitrary: "for some integer t"."""
        self.method = "form"
        self.doubtful = False
        self.shared_names: frozenset[str] | None = None
        """In a tuple or an interval, the names that both sides have: they are the same in every part."""

    def decide(self, method: str, equal: bool) -> bool:
        """Note the tier that decides and return the verdict."""
        self.method = method
        return equal

    def is_proved(self, left: Expr, right: Expr) -> bool:
        """Return whether two expressions are the same; where that is not found out, it is doubtful."""
        equivalence = compare_expressions(left, right)
        self.doubtful |= equivalence is Equivalence.UNPROVED
        return equivalence.is_equal

    def match(self, reference: Form, answer: Form) -> bool:
        """Return whether two forms are the same answer."""
        raise NotImplementedError


class Families(ComparisonState):
    """The part of `matching.Matcher` that compares formulas with parameters."""

    def same_with_parameters(self, reference: Expr, answer: Expr) -> bool:
        only_one, only_two = symbols(reference) - symbols(answer), symbols(answer) - symbols(reference)
        if len(only_one) == len(only_two) == 1:
            old, new = next(iter(only_two)), next(iter(only_one))
            alike = old.lower() == new.lower() or bool({old, new} & self.arbitrary_names)
            constants = _is_constant(reference, new) and _is_constant(answer, old)
            periods = _is_period(reference, new) and _is_period(answer, old)
            arbitrary = _is_arbitrary(reference, new) and _is_arbitrary(answer, old)
            if {old, new}.isdisjoint(self.shared_names or ()) and (alike or constants or periods or arbitrary):
                answer = rename(answer, {old: sym(new)})
            else:
                return False
            if compare_expressions(reference, answer).is_equal:
                return self.decide("renamed parameter", True)
        elif only_one or only_two:
            return False
        is_family = self.shared_names is None and self._shift(reference, answer) is not None
        return self.decide("family", True) if is_family else self._same_antiderivative(reference, answer)

    def match_parts(self, left: list[Form], right: list[Form]) -> bool:
        """Return whether forms are the same one by one; a counter of periods may be shifted, in all of them alike."""
        pairs = list(zip(left, right, strict=True))
        values = [(one.expr, other.expr) for one, other in pairs if isinstance(one, Value) and isinstance(other, Value)]
        shift = next((dict([found]) for pair in values if (found := self._shift(*pair)) is not None), {})
        names = [frozenset[str]().union(*(names_in(form) for form in forms)) for forms in (left, right)]
        before, self.shared_names = self.shared_names, names[0] & names[1]
        same = all(self.match(one, _renamed(other, shift)) for one, other in pairs)
        self.shared_names = before
        return same

    def _shift(self, reference: Expr, answer: Expr) -> tuple[str, Expr] | None:
        """Return k and what stands for it in b + kp' to make it a + kp; None where they are not one family.

        They are where p' = ±p and a - b is a whole multiple of p.
        """
        for name in sorted(symbols(reference) & symbols(answer)):
            if not (_is_period(reference, name) and _is_period(answer, name)):
                continue
            starts, seconds, thirds = (
                [rename(side, {name: num(at)}) for side in (reference, answer)] for at in range(3)
            )
            steps = [difference(second, start) for second, start in zip(seconds, starts, strict=True)]
            further = [difference(third, second) for third, second in zip(thirds, seconds, strict=True)]
            sign = next((at for at in (1, -1) if _are_equal(steps[0], mul(num(at), steps[1]))), None)
            if sign is None or not all(map(_are_equal, steps, further)):
                continue
            shift = constant_value(divide(difference(*starts), steps[1]))
            if shift is not None and abs(shift - round(shift)) < Fraction(1, 10**30) and symbols(reference) == {name}:
                return name, add(mul(num(sign), sym(name)), num(round(shift)))
        return None

    def _same_antiderivative(self, reference: Expr, answer: Expr) -> bool:
        """Return whether f + C and g + C are the same: f - g is constant."""
        for name in sorted(symbols(reference) & symbols(answer)):
            if name[:1] not in "CcKk" or not (_is_constant(reference, name) and _is_constant(answer, name)):
                continue
            gap = difference(reference, answer)
            others = symbols(gap) - {name}
            if not others:
                return False
            gap = rename(gap, {name: num(0)})
            values = [rename(gap, {other: num(Fraction(at, 7)) for other in others}) for at in (5, 9, 16)]
            if all(compare_expressions(values[0], value).is_equal for value in values[1:]):
                return self.decide("constant of integration", True)
        return False


def _are_equal(left: Expr, right: Expr) -> bool:
    return compare_expressions(left, right).is_equal


def _renamed(form: Form, names: dict[str, Expr]) -> Form:
    return replace(form, expr=rename(form.expr, names)) if names and isinstance(form, Value) else form


def _is_arbitrary(expr: Expr, name: str) -> bool:
    """Return whether a variable stands as the constant of a differential equation's solution: C·e^(2x)."""
    grows = any(node.op == "fn" or (node.op == "pow" and symbols(node.args[1])) for node in walk(expr))
    factors = {part for term in _parts_of(expr, "add") for part in _parts_of(term, "mul")}
    is_letter = name in ("C", "c", "K", "A", "B", "C_1", "c_1", "k")
    return is_letter and grows and sym(name) in factors and len(symbols(expr)) == 2


def _parts_of(expr: Expr, op: str) -> tuple[Expr, ...]:
    return expr.args if expr.op == op else (expr,)


def _is_constant(expr: Expr, name: str) -> bool:
    """Return whether a variable stands as a constant of integration: a term of its own, and nowhere else."""
    if not (name[:1] in "CcKk" or name in ("const", "D", "A", "B")) or expr.op != "add":
        return False
    own = [term for term in expr.args if term == sym(name)]
    return len(own) == 1 and sum(node.op == "sym" and node.name == name for node in walk(expr)) == 1


def _is_period(expr: Expr, name: str) -> bool:
    """Return whether a variable counts periods: it occurs once, multiplied with π, in a sum or alone."""
    if name[:1] not in "nkmNK" or sum(node.op == "sym" and node.name == name for node in walk(expr)) != 1:
        return False
    return any(
        name in symbols(term)
        and (has(term, "const", "pi") or has(term, "const", "deg"))
        and term.op == "mul"
        and not has(term, "fn")
        for term in _parts_of(expr, "add")
    )


def is_piecewise(form: Form) -> bool:
    """Return whether a form is a set of values with conditions."""
    return isinstance(form, Sequence) and form.brackets == "{}" and all(_is_case(item) for item in form.items)


def _is_case(form: Form) -> bool:
    return isinstance(form, Sequence) and len(form.items) == 2 and not isinstance(form.items[1], Value | Sequence)
