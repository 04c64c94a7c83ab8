r"""Drawn pairs: formulas, lists and numbers in other spellings are equal, near misses are not."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.records import Outcome
from curation.verify import answers

X, Y = sympy.symbols("x y")
FAST = settings(max_examples=25, deadline=None, derandomize=True)

small = st.integers(-9, 9)
positive = st.integers(1, 30)
fractions = st.builds(Fraction, st.integers(-99, 99), positive)


def equal(one: str, two: str) -> None:
    found = answers.compare(one, two)
    assert found.outcome is Outcome.CORRECT, (one, two, found)


def unequal(one: str, two: str) -> None:
    found = answers.compare(one, two)
    assert found.outcome is Outcome.WRONG, (one, two, found)


def tex(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else rf"\frac{{{value.numerator}}}{{{value.denominator}}}"


@st.composite
def expressions(draw: st.DrawFn) -> sympy.Expr:
    """A formula in x and y: polynomials, quotients, roots, exponentials, trigonometric functions."""
    leaf = st.one_of(small.map(sympy.Integer), st.sampled_from([X, Y, sympy.pi, sympy.Rational(1, 2)]))

    def grow(inner: st.SearchStrategy[sympy.Expr]) -> st.SearchStrategy[sympy.Expr]:
        return st.one_of(
            st.builds(lambda a, b: a + b, inner, inner),
            st.builds(lambda a, b: a * b, inner, inner),
            st.builds(lambda a, n: a**n, inner, st.integers(1, 3)),
            st.builds(lambda a: sympy.sqrt(a**2 + 1), inner),
            st.builds(lambda a: sympy.sin(a), inner),
            st.builds(lambda a: a / (X**2 + 2), inner),
        )

    return sympy.sympify(draw(st.recursive(leaf, grow, max_leaves=6)))


@pytest.mark.slow
@FAST
@given(expressions(), st.sampled_from(["+1", "+x", "+\\frac{1}{1000}"]))
def test_a_formula_is_equal_expanded_and_spelled_plainly_and_not_changed(formula: sympy.Expr, change: str) -> None:
    equal(sympy.latex(formula), sympy.latex(sympy.expand(formula)))
    equal(sympy.latex(formula), str(formula))
    unequal(sympy.latex(formula), sympy.latex(formula) + change)


@FAST
@given(st.integers(-(10**30), 10**30))
def test_integers(value: int) -> None:
    equal(str(value), f"{value:,}")
    equal(f"${value}$", f"\\boxed{{{value}}}")
    unequal(str(value), str(value + 1))


@FAST
@given(st.lists(fractions, min_size=2, max_size=5, unique=True), st.randoms())
def test_lists_and_sets_have_no_order_and_tuples_have_one(values: list[Fraction], dice: object) -> None:
    shuffled = sorted(values)
    if shuffled == values:
        shuffled.reverse()
    one, two = ", ".join(map(tex, values)), ", ".join(map(tex, shuffled))
    equal(one, two)
    equal(rf"\{{{one}\}}", rf"\{{{two}\}}")
    unequal(f"({one})", f"({two})")
    unequal(one, ", ".join(map(tex, values[:-1])))


@FAST
@given(st.integers(50, 5000), st.integers(1, 40))
def test_huge_factorials_and_powers(base: int, gap: int) -> None:
    equal(f"{base}!", f"{base} * {base - 1}!")
    unequal(rf"\frac{{1}}{{{base}!}}", rf"\frac{{1}}{{{base + gap}!}}")
    equal(f"2^{{{base}}}", rf"4^{{\frac{{{base}}}{{2}}}}")
    unequal(f"2^{{{base}}}", f"2^{{{base + gap}}}")
    unequal(f"2^{{2^{{{base}}}}}", f"2^{{2^{{{base + gap}}}}}")


@FAST
@given(fractions.filter(lambda f: f.denominator > 10 and f > 1), st.integers(3, 8))
def test_rounded_decimals_of_an_exact_reference(value: Fraction, places: int) -> None:
    if 10**places % value.denominator == 0:
        return
    rounded = f"{float(value):.{places}f}"
    equal(tex(value), rounded)
    off = Fraction(rounded) + Fraction(3, 10**places)
    unequal(tex(value), f"{float(off):.{places}f}")
