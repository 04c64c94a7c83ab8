"""Formulas with parameters: renamed ones, periodic families, antiderivatives up to a constant."""

from __future__ import annotations

from fractions import Fraction

from curation.verify.answers.comparing import ComparisonState
from curation.verify.answers.constants import difference
from curation.verify.answers.expr import Expr, divide, has, mul, num, rename, sym, symbols, walk
from curation.verify.answers.samevalue import compare_expressions
from curation.verify.answers.written import constant_value


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
            if alike or constants or periods or arbitrary:
                answer = rename(answer, {old: sym(new)})
            else:
                return False
            if compare_expressions(reference, answer).is_equal:
                return self.decide("renamed parameter", True)
        elif only_one or only_two:
            return False
        return self._same_family(reference, answer) or self._same_antiderivative(reference, answer)

    def _same_family(self, reference: Expr, answer: Expr) -> bool:
        """Return whether a + kp and b + kp' are one family: p' = ±p and a - b is a whole multiple of p."""
        for name in sorted(symbols(reference) & symbols(answer)):
            if not (_is_period(reference, name) and _is_period(answer, name)):
                continue
            starts = [rename(side, {name: num(0)}) for side in (reference, answer)]
            steps = [
                difference(rename(side, {name: num(1)}), start)
                for side, start in zip((reference, answer), starts, strict=True)
            ]
            if not (
                compare_expressions(steps[0], steps[1]).is_equal
                or compare_expressions(steps[0], mul(num(-1), steps[1])).is_equal
            ):
                continue
            shift = constant_value(divide(difference(*starts), steps[0]))
            if shift is not None and abs(shift - round(shift)) < Fraction(1, 10**30) and symbols(reference) == {name}:
                return self.decide("family", True)
        return False

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


def _is_arbitrary(expr: Expr, name: str) -> bool:
    """Return whether a variable stands as the constant of a differential equation's solution: C·e^(2x)."""
    grows = any(node.op == "fn" or (node.op == "pow" and symbols(node.args[1])) for node in walk(expr))
    return name in ("C", "c", "K", "A", "B", "C_1", "c_1", "k") and grows and len(symbols(expr)) == 2


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
    terms = expr.args if expr.op == "add" else (expr,)
    return any(
        name in symbols(term)
        and (has(term, "const", "pi") or has(term, "const", "deg"))
        and term.op == "mul"
        and not has(term, "fn")
        for term in terms
    )
