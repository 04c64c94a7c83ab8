"""Formulas become MathML, everything else text; differences are marked."""

from __future__ import annotations

import pytest

from flows.page.formulas import differences, formula, pieces, rendered


@pytest.mark.parametrize(
    ("source", "part"),
    [
        (r"\frac{1}{2}", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
        (r"\sqrt[3]{x}", "<mroot><mi>x</mi><mn>3</mn></mroot>"),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "<mtable"),
        (r"\mbox{if } x", "<mtext>if"),
    ],
)
def test_a_formula_is_rendered(source: str, part: str) -> None:
    made = formula(source)
    assert made is not None
    assert part in made


@pytest.mark.parametrize(
    "source", [r"\href{javascript:x}{y}", r"\unknown{1}", r"\frac{1}", r"\def\a{\a\a}\a", "x" * 5000]
)
def test_what_cannot_be_rendered_is_text(source: str) -> None:
    assert formula(source) is None
    assert "<" not in rendered(f"so ${source}$ it is")


def test_no_markup_of_a_formula_comes_through() -> None:
    made = formula(r"\text{<script>alert(1)</script>}")
    assert made is not None
    assert "<script" not in made
    assert "style" not in (formula(r"\textcolor{red}{x}") or "")


def test_money_is_no_formula_and_code_holds_none() -> None:
    assert list(pieces("It is $3 and $x$.")) == [("text", "It is $3 and "), ("inline", "x"), ("text", ".")]
    assert [kind for kind, _ in pieces("```\n$x$\n```")] == ["text"]
    assert [kind for kind, _ in pieces(r"\[ x \] and \boxed{7} and $\boxed{7}$")] == [
        *("display", "text", "inline", "text", "inline")
    ]


def test_differences_are_marked_word_by_word() -> None:
    before, after = differences("What is A. 3 <b>", "What is 3 <i>")
    assert before == "What is <del>A. </del>3 &lt;<del>b</del>&gt;"
    assert after == "What is 3 &lt;<ins>i</ins>&gt;"
