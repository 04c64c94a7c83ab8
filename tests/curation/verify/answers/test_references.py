"""Which references can be verified against, and that computing is lazy."""

from __future__ import annotations

import subprocess
import sys

import pytest

from curation.verify import answers

BROKEN = [
    "", "...", "???", "+", "=", "= =", "-", "}", "}{", "{{36}", "3 +", "2x+", "x =", "^9", "x^", "a_", "2 \\times",
    r"\frac{3}{4", r"\frac{1{2}", r"\frac{1}", r"\frac{}{2}", r"\sqrt{", r"\sqrt", r"\sqrt{}", r"x^{3", r"\boxed{}",
    r"\begin{pmatrix}1&2", r"(1,2", r"[1,2", r"\left(1,2", r"\{1, 2", "x^2 by", "12 (or 13?)", "see figure",
    "see the solution", "(see above)", "as shown", "refer to the diagram", "proof", "Proved", "N/A", "none given",
    "TBD", "answer not available", "![](x.png)", r"\includegraphics{a.png}", "about 12", "answers may vary",
    "The triangle is isosceles because two sides are equal.",
]  # fmt: skip
USABLE = [
    "12", r"\frac{3}{4}", "(1, 2]", r"]1, 2[", r"\{1, 2\}", "x = 5", "= 5", "-3", "no solution", "B", "(B) 12", "B) 12",
    "3:30 pm", "March 14", "blue", "Alice and Bob", "等腰三角形", r"\begin{cases} x=1 \\ y=2 \end{cases}", r"x^2+C",
    r"\left\{ x \mid x > 2 \right\}", r"f(x)=\begin{cases} x & x \ge 0 \\ -x & x < 0 \end{cases}", "1011_2", "50%",
    r"\int_0^1 x\,dx", "7!", r"90^\circ", "x > 3", r"[0, \infty)", r"\emptyset", "yes", "ACD", "12 \\text{ cm}^2",
]  # fmt: skip


@pytest.mark.parametrize("reference", BROKEN)
def test_a_broken_reference_is_refused(reference: str) -> None:
    assert answers.check_reference(reference) is not None


@pytest.mark.parametrize("reference", USABLE)
def test_a_usable_reference_is_accepted(reference: str) -> None:
    assert answers.check_reference(reference) is None


def test_sympy_is_imported_when_something_is_to_be_computed_and_not_before() -> None:
    program = (
        "import sys; from curation.verify import answers, math_judge; answers.compare('x^2-1', '(x-1)(x+1)');"
        "assert 'sympy' not in sys.modules; answers.compare(r'\\int_0^1 x dx', '1/2'); assert 'sympy' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
