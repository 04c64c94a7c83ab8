"""Compares values: units, approximations, formulas of integers, families with parameters, cases."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from curation.verify.answers.balls import rational_value
from curation.verify.answers.expr import (
    Expr,
    add,
    const,
    difference,
    divide,
    fn,
    has,
    mul,
    num,
    rename,
    replaced,
    sym,
    symbols,
    walk,
)
from curation.verify.answers.forms import Form, Sequence, Value, names_in
from curation.verify.answers.policy import WrittenNumber, compare_rounded
from curation.verify.answers.question import QuestionForm
from curation.verify.answers.samevalue import (
    Equivalence,
    agree_within_rounding,
    compare_expressions,
    constant_value,
    written_number,
)
from curation.verify.answers.symbolic import evaluate_symbolically, needs_sympy
from curation.verify.answers.units import conversion_factor, is_known, is_power_of, normalise_unit

RADIANS = divide(const("pi"), num(180))
MIN_COEFFICIENT_DIGITS = 5
"""Min digits of a rounded coefficient in a formula."""


class Values:
    """Compares single values, for `matching.Matcher`; ``method`` is the tier that decided last."""

    def __init__(self, arbitrary_names: frozenset[str], question: QuestionForm) -> None:
        self.question = question
        self.arbitrary_names = arbitrary_names
        """Names that a text declares arbitrary: "for some integer t"."""
        self.method = "form"
        self.doubtful = False
        self.shared_names: frozenset[str] | None = None
        """Names in both tuples or intervals, which mean the same in every item."""

    def decide(self, method: str, equal: bool) -> bool:
        """Note the deciding tier and return the verdict."""
        self.method = method
        return equal

    def is_proved(self, left: Expr, right: Expr) -> bool:
        """Return whether two expressions are the same; doubtful if undecided."""
        equivalence = compare_expressions(left, right)
        self.doubtful |= equivalence is Equivalence.UNPROVED
        return equivalence.is_equal

    def match(self, reference: Form, answer: Form) -> bool:
        """Return whether two forms are the same answer."""
        raise NotImplementedError

    def match_values(self, reference: Value, answer: Value) -> bool:
        """Return whether two values are the same, their units omitted, converted, or implied."""
        shares = [side.unit.startswith("% ") for side in (reference, answer)]
        if any(shares) and reference.unit != answer.unit:
            self.doubtful |= all(shares)
            bare = [
                Value(side.expr, "%") if share else side
                for side, share in zip((reference, answer), shares, strict=True)
            ]
            return not all(shares) and self.match_values(*bare)
        if self.question.unit is not None:
            same = self._match_in_unit(reference, answer, self.question.unit)
            if same is not None:
                return same
        if is_known(reference.unit) and reference.unit and not answer.unit:
            answer = _with_unit_letter(answer)
        elif is_known(answer.unit) and answer.unit and not reference.unit:
            reference = _with_unit_letter(reference)
        reference_unit, answer_unit = reference.unit, answer.unit
        if reference_unit == answer_unit == "deg" and symbols(reference.expr):
            return self.is_same(mul(reference.expr, RADIANS), mul(answer.expr, RADIANS))
        if reference_unit == answer_unit:
            return self.is_same(reference.expr, answer.expr)
        return any(self.is_same(left, right) for left, right in self._conversions(reference, answer))

    def _conversions(self, reference: Value, answer: Value) -> list[tuple[Expr, Expr]]:
        """Return pairs without units, of which one must match."""
        reference_unit, answer_unit = reference.unit, answer.unit
        plain = (reference.expr, answer.expr)
        if "%" in (reference_unit, answer_unit):
            return self._percent_conversions(reference, answer)
        if reference_unit == "deg" and answer_unit in ("", "rad"):
            radians = (mul(reference.expr, RADIANS), answer.expr)
            return [radians] if answer_unit == "rad" or _in_radians(answer.expr) else [plain]
        if answer_unit == "deg" and reference_unit in ("", "rad"):
            radians = (reference.expr, mul(answer.expr, RADIANS))
            return [radians] if reference_unit == "rad" or _in_radians(reference.expr) else [plain]
        if reference_unit in ("", "ratio") or answer_unit in ("", "ratio"):
            return [plain]
        factor = conversion_factor(answer_unit, reference_unit)
        if factor is not None:
            return [(reference.expr, _scale(answer.expr, num(factor)))]
        self.doubtful = True
        return []

    def _match_in_unit(self, reference: Value, answer: Value, unit: str) -> bool | None:
        """Return whether values are the same if the bare one is in ``unit``; None if undecided.

        Equal numbers in different units are doubtful.
        """
        reference, answer = _with_unit_letter(reference), _with_unit_letter(answer)
        if (reference.unit == "") == (answer.unit == ""):
            return None
        measured, bare = (reference, answer) if reference.unit else (answer, reference)
        if symbols(bare.expr) or measured.unit == "%" or (unit == "deg" and _in_radians(bare.expr)):
            return None
        if {measured.unit, unit} == {"deg", "rad"}:
            converted = mul(measured.expr, RADIANS) if unit == "rad" else divide(measured.expr, RADIANS)
        else:
            factor = conversion_factor(measured.unit, unit)
            if factor is None:
                is_power = is_power_of(measured.unit, unit)
                self.doubtful |= is_power and self.is_same(reference.expr, answer.expr)
                return False if is_power else None
            converted = _scale(measured.expr, num(factor))
        sides = (converted, answer.expr) if reference.unit else (reference.expr, converted)
        if self.is_same(*sides):
            return True
        self.doubtful |= self.is_same(reference.expr, answer.expr)
        return False

    def _percent_conversions(self, reference: Value, answer: Value) -> list[tuple[Expr, Expr]]:
        """Return the pairs to compare: 28% is 0.28 or a bare 28, but the reference 0.5 is not 0.5%."""
        hundredth = num(Fraction(1, 100))
        bare = answer if reference.unit == "%" else reference
        if bare.unit not in ("", "ratio"):
            return []
        plain = (reference.expr, answer.expr)
        is_asked = self.question.is_percent
        if bare is answer:
            converted = (_scale(reference.expr, hundredth), answer.expr)
            if is_asked is None:
                return [plain, converted]
            return self._only(plain, converted) if is_asked else self._only(converted, plain)
        converted = (reference.expr, _scale(answer.expr, hundredth))
        number = written_number(bare.expr)
        if is_asked is False:
            return self._only(converted, plain)
        return [converted] if number is not None and abs(number.value) < 1 else [converted, plain]

    def _only(self, pair: tuple[Expr, Expr], alternative: tuple[Expr, Expr]) -> list[tuple[Expr, Expr]]:
        """Return one pair alone; doubtful if the other would match."""
        self.doubtful |= self.is_same(*alternative) and not self.is_same(*pair)
        return [pair]

    def is_same(self, reference: Expr, answer: Expr) -> bool:
        """Return whether two expressions are the same, exactly or by rounding."""
        if needs_sympy(reference) or needs_sympy(answer):
            return self._match_computed(reference, answer)
        numbers = written_number(reference), written_number(answer)
        if numbers[0] is not None and numbers[1] is not None:
            if numbers[0].value == numbers[1].value:
                return self.decide("number", True)
            return self._match_rounded(numbers[0], numbers[1])
        if has(reference, "fn", "residue") or has(answer, "fn", "residue"):
            return self._match_residues(reference, answer)
        if has(reference, "fn", "base") or has(answer, "fn", "base"):
            return self._match_base(reference, answer)
        if has(reference, "const", "deg") != has(answer, "const", "deg"):
            # 180° - 2α against 180 - 2α: the sign left out; against π - 2α: converted.
            bare = [
                replaced(side, lambda node: num(1) if node == const("deg") else None) for side in (reference, answer)
            ]
            if not has(bare[0], "const", "pi") and compare_expressions(bare[0], bare[1]).is_equal:
                return self.decide("degrees", True)
        equivalence = compare_expressions(reference, answer)
        if equivalence.is_equal:
            return self.decide(equivalence.value, True)
        if (
            equivalence is Equivalence.EQUAL_ON_POSITIVE
            and symbols(reference) | symbols(answer) <= self.question.positive
        ):
            return self.decide("equal on positive numbers", True)
        integers = self.question.integers & (symbols(reference) | symbols(answer))
        if integers and (_varies_by_integers(reference) or _varies_by_integers(answer)):
            equivalence = compare_expressions(reference, answer, integers)
            if equivalence.is_equal:
                return self.decide(f"{equivalence.value} of integers", True)
        if equivalence in (Equivalence.EQUAL_ON_POSITIVE, Equivalence.UNPROVED):
            self.doubtful = True
            self.method = equivalence.value
        if equivalence is Equivalence.UNPROVED:
            return False
        if symbols(reference) or symbols(answer):
            return self.same_with_parameters(reference, answer) or self._rounded_coefficients(reference, answer)
        return self._match_approximation(numbers, reference, answer) or self._rounded_coefficients(reference, answer)

    def _match_computed(self, reference: Expr, answer: Expr) -> bool:
        if reference == answer:
            return self.decide("exact", True)
        reference_value = evaluate_symbolically(reference) if needs_sympy(reference) else reference
        answer_value = evaluate_symbolically(answer) if needs_sympy(answer) else answer
        if reference_value is None or answer_value is None or needs_sympy(reference_value) or needs_sympy(answer_value):
            self.doubtful = True
            return self.decide("not computed", False)
        equal = self.is_same(reference_value, answer_value)
        return self.decide(f"computed, {self.method}", equal)

    def _match_rounded(self, reference: WrittenNumber, answer: WrittenNumber) -> bool:
        equal, doubtful = compare_rounded(reference, answer, self.question.rounding)
        self.doubtful |= doubtful and not equal
        return self.decide("approximation" if equal else "number", equal)

    def _match_approximation(
        self, numbers: tuple[WrittenNumber | None, WrittenNumber | None], reference: Expr, answer: Expr
    ) -> bool:
        reference_number, answer_number = numbers
        if (reference_number is None) == (answer_number is None):
            return False
        if reference_number is None:
            value = constant_value(reference)
            reference_number = WrittenNumber(value, None) if value is not None else None
        if answer_number is None:
            value = constant_value(answer)
            answer_number = WrittenNumber(value, None) if value is not None else None
        return (
            reference_number is not None
            and answer_number is not None
            and self._match_rounded(reference_number, answer_number)
        )

    def _match_residues(self, reference: Expr, answer: Expr) -> bool:
        """Return whether a (mod m) and b (mod m) are one class; a plain number is doubtful."""
        if not reference.name == answer.name == "residue":
            self.doubtful = True
            return False
        (left, modulus), (right, other_modulus) = reference.args, answer.args
        gap = rational_value(divide(difference(left, right), modulus))
        same = compare_expressions(left, right).is_equal or (gap is not None and gap.denominator == 1)
        return self.decide("residue", same and compare_expressions(modulus, other_modulus).is_equal)

    def _match_base(self, reference: Expr, answer: Expr) -> bool:
        """Return whether digits and base are the same; bare numbers need the statement's base, or are doubtful."""
        if reference.op == answer.op == "fn":
            return self.decide("base", reference == answer)
        based, bare = (reference, answer) if reference.op == "fn" else (answer, reference)
        if self.question.base is not None and based.args[1:] == (num(self.question.base),):
            return self.decide("base", bare == num(int(based.args[0].name)) if based.args[0].name.isdigit() else False)
        self.doubtful = True
        return False

    def _rounded_coefficients(self, reference: Expr, answer: Expr) -> bool:
        """Return whether formulas agree if long decimals on only one side are rounded."""
        if symbols(reference) != symbols(answer):
            return False
        decimals = [_long_decimals(side) for side in (reference, answer)]
        if decimals[0] == decimals[1]:
            return False
        left = _with_rounding(reference, decimals[0] - decimals[1])
        right = _with_rounding(answer, decimals[1] - decimals[0])
        same = self.decide("approximation", agree_within_rounding(left, right))
        is_refused = self.question.rounding is not None and self.question.rounding.exact and bool(decimals[1])
        self.doubtful |= same and is_refused
        return same and not is_refused

    # formulas with parameters

    def same_with_parameters(self, reference: Expr, answer: Expr) -> bool:
        reference_only, answer_only = symbols(reference) - symbols(answer), symbols(answer) - symbols(reference)
        if len(reference_only) == len(answer_only) == 1:
            old, new = next(iter(answer_only)), next(iter(reference_only))
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
        elif reference_only or answer_only:
            return False
        is_family = self.shared_names is None and self._shift(reference, answer) is not None
        return self.decide("family", True) if is_family else self._same_antiderivative(reference, answer)

    def match_parts(self, left: list[Form], right: list[Form]) -> bool:
        """Return whether forms match item by item, after a shift of a period counter."""
        pairs = list(zip(left, right, strict=True))
        values = [
            (reference.expr, answer.expr)
            for reference, answer in pairs
            if isinstance(reference, Value) and isinstance(answer, Value)
        ]
        shift = next((dict([step]) for pair in values if (step := self._shift(*pair)) is not None), {})
        names = [frozenset[str]().union(*(names_in(form) for form in forms)) for forms in (left, right)]
        before, self.shared_names = self.shared_names, names[0] & names[1]
        same = all(self.match(reference, _renamed(answer, shift)) for reference, answer in pairs)
        self.shared_names = before
        return same

    def _shift(self, reference: Expr, answer: Expr) -> tuple[str, Expr] | None:
        """Return k and the replacement that makes b + kp' equal a + kp, if p' = ±p divides a - b."""
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
            other_names = symbols(gap) - {name}
            if not other_names:
                return False
            gap = rename(gap, {name: num(0)})
            values = [
                rename(gap, {other_name: num(Fraction(at, 7)) for other_name in other_names}) for at in (5, 9, 16)
            ]
            if all(compare_expressions(values[0], value).is_equal for value in values[1:]):
                return self.decide("constant of integration", True)
        return False


def _are_equal(left: Expr, right: Expr) -> bool:
    return compare_expressions(left, right).is_equal


def _renamed(form: Form, names: dict[str, Expr]) -> Form:
    return replace(form, expr=rename(form.expr, names)) if names and isinstance(form, Value) else form


def _is_arbitrary(expr: Expr, name: str) -> bool:
    """Return whether a variable is a differential equation's constant: C·e^(2x)."""
    grows = any(node.op == "fn" or (node.op == "pow" and symbols(node.args[1])) for node in walk(expr))
    factors = {part for term in _parts_of(expr, "add") for part in _parts_of(term, "mul")}
    is_letter = name in ("C", "c", "K", "A", "B", "C_1", "c_1", "k")
    return is_letter and grows and sym(name) in factors and len(symbols(expr)) == 2


def _parts_of(expr: Expr, op: str) -> tuple[Expr, ...]:
    return expr.args if expr.op == op else (expr,)


def _is_constant(expr: Expr, name: str) -> bool:
    """Return whether a variable is a constant of integration, a separate term."""
    if not (name[:1] in "CcKk" or name in ("const", "D", "A", "B")) or expr.op != "add":
        return False
    own = [term for term in expr.args if term == sym(name)]
    return len(own) == 1 and sum(node.op == "sym" and node.name == name for node in walk(expr)) == 1


def _is_period(expr: Expr, name: str) -> bool:
    """Return whether a variable counts periods: it occurs once, times π or degrees."""
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


def _long_decimals(expr: Expr) -> frozenset[Expr]:
    return frozenset(
        node
        for node in walk(expr)
        if node.op == "num"
        and node.places is not None
        and WrittenNumber(node.value, node.places).significant_digits >= MIN_COEFFICIENT_DIGITS
    )


def _with_rounding(expr: Expr, decimals: frozenset[Expr]) -> Expr:
    """Return an expression with these decimals uncertain by half their last place."""

    def uncertain(node: Expr) -> Expr | None:
        error = Fraction(49, 100) / Fraction(10) ** (node.places or 0)
        return fn("rounded", node, num(error)) if node in decimals else None

    return replaced(expr, uncertain)


def _with_unit_letter(value: Value) -> Value:
    """Return a value with its last letters as unit: 0.05·m next to 5 cm."""
    factors = list(value.expr.args) if value.expr.op == "mul" else []
    units: list[str] = []
    while len(factors) > 1:
        letter, power = factors[-1], ""
        if letter.op == "pow" and letter.args[1].op == "num" and letter.args[1].value in (-3, -2, -1, 2, 3):
            letter, power = letter.args[0], f"^{letter.args[1].value}"
        inner = letter.args if letter.op == "mul" else (letter,)
        if any(symbol.op != "sym" or not is_known(symbol.name) for symbol in inner):
            break
        units[:0] = [symbol.name + power for symbol in inner]
        factors.pop()
    if value.unit or not units or any(symbols(factor) for factor in factors):
        return value
    return Value(mul(*factors), normalise_unit("*".join(units)))


def _varies_by_integers(expr: Expr) -> bool:
    periodic = ("floor", "ceil", "mod", "gcd", "lcm", "sin", "cos", "tan")
    return any(
        (node.op == "fn" and node.name in periodic) or (node.op == "pow" and bool(symbols(node.args[1])))
        for node in walk(expr)
    )


def _scale(expr: Expr, factor: Expr) -> Expr:
    """Scale an expression; powers of ten keep a number's digits."""
    number = written_number(expr)
    if number is None:
        return mul(expr, factor)
    places = number.places
    if places is not None:
        scale = factor.value
        while scale < 1:
            scale, places = scale * 10, places + 1
        while scale >= 10:
            scale, places = scale / 10, places - 1
    return num(number.value * factor.value, places)


def _in_radians(expr: Expr) -> bool:
    return has(expr, "const", "pi") or any(node.op == "fn" and node.name.startswith("arc") for node in walk(expr))
