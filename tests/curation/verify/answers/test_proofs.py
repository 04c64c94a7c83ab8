r"""Proved equal, refuted, or unproved and doubtful: values that lie near one another, steps, and whole numbers."""

from __future__ import annotations

import threading

import pytest

from curation.records import Outcome
from curation.verify import answers
from curation.verify.answers.constants import is_vanishing_sum, linear_form, same_algebraic_number
from curation.verify.answers.expr import Expr, add, neg
from curation.verify.answers.grammar import parse_expression
from curation.verify.answers.samevalue import Equivalence, compare_expressions
from curation.verify.answers.tokens import tokenise

REFUTED = r"""
\tanh(100) | 1
\tanh(100+x^2) | 1
\cos(10^{-40}) | 1
\arctan(10^{70}) | \frac{\pi}{2}
\sqrt{10^{80}-1} | \sqrt{10^{80}-2}
\sinh(100) | \cosh(100)
10^{100}+1 | 10^{100}
e^{\pi\sqrt{163}} | 262537412640768744
\lfloor n/2\rfloor+1 | \lfloor n/9\rfloor+1
\lfloor \log_{2}n \rfloor | \lfloor \log_{4}n \rfloor
\lfloor n/2\rfloor | \frac{n-1}{2}
\lfloor x/2\rfloor | \lceil(x-1)/2\rceil
\lfloor x\rfloor | x
\lfloor n\rfloor | n
\lfloor x\rfloor | \lceil x\rceil-1
\max(n,5) | 5
\max(n,0) | n
|x-100| | 100-x
|x-100|+|x-101| | 1
\sqrt{x^2} | x
0.33333e^{-x} | 0.33334e^{-x}
\frac{1.33333333333333 e^{0.19683 x}}{x} | \frac{1.33333393333333 e^{0.19683 x}}{x}
"""

PROVED = r"""
\lfloor n/2\rfloor | \lceil(n-1)/2\rceil
\lfloor \frac{n^2}{4}\rfloor | \lfloor n/2\rfloor\lceil n/2\rceil
\lfloor \log_2 n\rfloor+1 | \lceil \log_2(n+1)\rceil
n \bmod 2 | \frac{1-(-1)^n}{2}
\max(x,y) | \frac{x+y+|x-y|}{2}
\max(a,b)-\min(a,b) | |a-b|
\sqrt{x^2} | |x|
\sqrt{5+2\sqrt6} | \sqrt2+\sqrt3
\sqrt[3]{2+\sqrt5}+\sqrt[3]{2-\sqrt5} | 1
\cos\frac{\pi}{7}\cos\frac{2\pi}{7}\cos\frac{3\pi}{7} | \frac18
\frac{\sqrt{2+\sqrt{2+\sqrt2}}}{2} | \cos\frac{\pi}{16}
\sin(2\arctan\frac12) | \frac45
\sinh(\ln 2) | \frac34
2^{\log_2 5} | 5
\arctan\frac12+\arctan\frac13 | \frac{\pi}{4}
\ln(2+\sqrt3) | -\ln(2-\sqrt3)
\frac{\ln 9}{\ln 4} | \log_2 3
\sin^2 1+\cos^2 1 | 1
\sin 2 | 2\sin 1\cos 1
(\pi+1)^2 | \pi^2+2\pi+1
e^{1+\ln 2} | 2e
2^{1000000} | 4^{500000}
5000! | 5000\cdot 4999!
0.33333e^{-x} | \frac13 e^{-x}
"""


def parsed(text: str) -> Expr:
    return parse_expression(tokenise(text))


def pairs(block: str) -> list[tuple[str, str]]:
    return [(left, right) for left, _, right in (line.partition(" | ") for line in block.strip().split("\n"))]


@pytest.mark.parametrize(("left", "right"), pairs(REFUTED))
def test_refuted_both_ways(left: str, right: str) -> None:
    assert answers.compare(left, right).outcome is Outcome.WRONG
    assert answers.compare(right, left).outcome is Outcome.WRONG


@pytest.mark.parametrize(("left", "right"), pairs(PROVED))
def test_proved_both_ways(left: str, right: str) -> None:
    for found in (answers.compare(left, right), answers.compare(right, left)):
        assert found.outcome is Outcome.CORRECT
        assert not found.doubtful


def test_what_only_agrees_to_many_digits_is_unproved_and_doubtful() -> None:
    assert compare_expressions(parsed("i^i"), parsed(r"e^{-\pi/2}")) is Equivalence.UNPROVED
    found = answers.compare("i^i", r"e^{-\pi/2}")
    assert found.outcome is Outcome.WRONG
    assert found.doubtful


def test_algebraic_numbers_are_told_apart_by_their_separation_bound() -> None:
    assert same_algebraic_number(parsed(r"\sqrt8"), parsed(r"2\sqrt2")) is True
    assert same_algebraic_number(parsed(r"\sqrt{10^{200}+1}"), parsed(r"10^{100}")) is False
    assert same_algebraic_number(parsed(r"\ln 2"), parsed("1")) is None


def test_sums_of_logarithms_and_of_angles_vanish_where_their_product_is_one() -> None:
    machin = add(parsed(r"4\arctan\frac15-\arctan\frac{1}{239}"), neg(parsed(r"\frac{\pi}{4}")))
    assert is_vanishing_sum(machin)
    assert not is_vanishing_sum(add(parsed(r"4\arctan\frac15-\arctan\frac{1}{238}"), neg(parsed(r"\frac{\pi}{4}"))))


def test_a_linear_form_sees_through_quotients() -> None:
    assert linear_form(parsed(r"\frac{\ln 5}{\ln 2}\ln 8")) == {parsed(r"\ln 5"): 3}
    assert linear_form(parsed(r"\pi\ln 2")) is None


@pytest.mark.parametrize(
    ("reference", "answer"),
    [("x=5", "y=5"), ("a_0=1", "a_2=1"), ("f(x)=2x", "g(x)=2x"), ("P(x)=x^2", "P(-x)=x^2"), (r"x\ge 5", r"n\ge 5"),
     ("B. 12", "B. 129"), (r"(e, \infty)", r"[e, \infty)")],
)  # fmt: skip
def test_the_same_value_under_another_name_is_doubtful(reference: str, answer: str) -> None:
    found = answers.compare(reference, answer)
    assert found.outcome is Outcome.WRONG
    assert found.doubtful


@pytest.mark.parametrize(
    ("reference", "answer"),
    [("f(m)=2m+1", "f(n)=2n+1"), ("f(x)=2x", "y=2x"), (r"S=12", r"\text{Area}=12"), ("AB=5", "BA=5"), ("x=1", "X=1")],
)
def test_labels_that_name_the_same_thing(reference: str, answer: str) -> None:
    assert answers.compare(reference, answer).outcome is Outcome.CORRECT


@pytest.mark.parametrize(("left", "right"), [("(3,2)", "(3,2]"), ("(a,b)=(2,13)", "(a,b)=(9,13)"), ("(0,0)", "[0,0)")])
def test_a_pair_is_no_interval(left: str, right: str) -> None:
    assert answers.compare(left, right).outcome is Outcome.WRONG


def test_threads_do_not_disturb_one_another() -> None:
    wrong: list[str] = []

    def judge() -> None:
        for left, right in pairs(PROVED)[:12]:
            if answers.compare(left, right).outcome is not Outcome.CORRECT:
                wrong.append(left)

    threads = [threading.Thread(target=judge) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
