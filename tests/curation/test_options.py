"""Options found inside statements, in the styles they are written in; and answers resolved to one of them."""

from __future__ import annotations

import pytest

from curation.filters.multiple_choice import ParsedChoice, open_question, parse_choice, resolve_option
from curation.options import split_options, strip_label


def open_one(statement: str, answer: str, choices: list[str | None] | None = None) -> tuple[str, str] | str | None:
    """The open question with its answer, why no option is right, or None: no multiple choice, or it needs options."""
    parsed = parse_choice(statement, answer, choices)
    return parsed if parsed is None or isinstance(parsed, str) else open_question(parsed)


BOLD = "\\qquad".join(f"\\textbf{{({letter})}}\\ {number}" for letter, number in zip("ABCD", "3456", strict=True))
SPACED = "\\qquad".join(f"\\textbf{{({letter}) }}{number}" for letter, number in zip("ABCD", "3456", strict=True))
ROMAN = " \\quad ".join(f"\\mathrm{{({letter})}}\\ {number}" for letter, number in zip("ABCD", "3456", strict=True))
ALIGNED = "\\text{A)}\\ & 3 &\n\\text{B)}\\ & 4\\\\\n\\text{C)}\\ & 5 &\n\\text{D)}\\ & 6\\\\"
STYLES = {
    "brackets on one line": "What is $2+2$? (A) 3 (B) 4 (C) 5 (D) 6",
    "brackets on lines": "What is $2+2$?\n(A) 3\n(B) 4\n(C) 5\n(D) 6",
    "stops on one line": "What is $2+2$? A. 3 B. 4 C. 5 D. 6",
    "stops on lines": "What is $2+2$?\nA. 3\nB. 4\nC. 5\nD. 6",
    "closing brackets": "What is $2+2$?\nA) 3\nB) 4\nC) 5\nD) 6",
    "colons": "What is $2+2$?\nA: 3\nB: 4\nC: 5\nD: 6",
    "bold markdown": "What is $2+2$?\n**A.** 3\n**B.** 4\n**C.** 5\n**D.** 6",
    "textbf": f"What is $2+2$?\n${BOLD}$",
    "textbf with a space": f"What is $2+2$?\n\n${SPACED}$",
    "mathrm": f"What is $2+2$? ${ROMAN}$",
    "align": f"What is $2+2$?\n\\begin{{align*}}\n{ALIGNED}\n\\end{{align*}}",
    "lower case": "What is $2+2$? (a) 3 (b) 4 (c) 5 (d) 6",
    "full width": "What is $2+2$?（A）3（B）4（C）5（D）6",
    "full width letters": "What is $2+2$? Ａ．3 Ｂ．4 Ｃ．5 Ｄ．6",
    "enumeration comma": "What is $2+2$? A、3 B、4 C、5 D、6",
    "header": "What is $2+2$?\nAnswer Choices: (A) 3 (B) 4 (C) 5 (D) 6",
    "options header": "What is $2+2$?\n\n\\noindent Options:\\\\\nA) 3\\\\\nB) 4\\\\\nC) 5\\\\\nD) 6".replace(
        "\\noindent ", ""
    ),
}


@pytest.mark.parametrize("style", STYLES)
def test_every_style_is_opened(style: str) -> None:
    answer = "b" if style == "lower case" else "B"
    assert open_one(STYLES[style], answer) == ("What is $2+2$?", "4")


def test_numbered_and_circled_options_where_the_question_sends_to_them() -> None:
    assert parse_choice("选出 $2+2$ 的值 ①3 ②4 ③5", "②") == ParsedChoice("选出 $2+2$ 的值", ("3", "4", "5"), 1)
    numbered = split_options("Choose the value of $2+2$: (1) 3 (2) 4 (3) 5")
    assert numbered is not None
    assert numbered.options == ("3", "4", "5")


NOT_OPTIONS = [
    ("Points A, B and C lie on a line. Find $AB$ if $AC = 5$ and $BC = 2$.", "3"),
    ("Let $f$ satisfy (a) $f(1)=2$; (b) $f(n+1)=2f(n)$. Find $f(3)$.", "8"),
    ("设数列满足：(1) $a_1=1$；(2) $a_{n+1}=2a_n$；(3) $a_n>0$。求 $a_4$。", "8"),
    ("已知三个条件 ①$a>0$ ②$b>0$ ③$a+b=1$，求 $ab$ 的最大值。", "$\\frac14$"),
    ("In triangle ABC, angle A. is twice angle B. Find C.", "90"),
]


@pytest.mark.parametrize(("statement", "answer"), NOT_OPTIONS)
def test_labels_that_are_no_options_are_left_alone(statement: str, answer: str) -> None:
    assert open_one(statement, answer) is None


def test_options_of_a_field_lose_their_labels() -> None:
    assert [strip_label(text, index) for index, text in enumerate(["A)6", "B. 7", "(C) 8", "D、9", "10"])] == [
        "6",
        "7",
        "8",
        "9",
        "10",
    ]
    assert strip_label("A)A)59", 0) == "59"
    assert strip_label("B.C.", 0) == "B.C."


def test_answers_by_letter_text_and_number() -> None:
    options = ["6", "7", "$\\frac{1}{2}$"]
    assert resolve_option("B", options) == 1
    assert resolve_option("(b)", options) == 1
    assert resolve_option("$\\text{(C)}$", options) == 2
    assert resolve_option("The answer is B.", options) == 1
    assert resolve_option("B. 7", options) == 1
    assert resolve_option("7", options) == 1
    assert resolve_option("\\frac{1}{2}", options) == 2
    assert resolve_option("F", options) is None
    assert resolve_option("9", options) is None
    assert resolve_option("2", options) is None
    assert resolve_option("2", options, first=0) == 2
    assert resolve_option("2", options, first=1) == 1


def test_unresolved_and_several_are_refused_with_evidence() -> None:
    refused = open_one("What is $2+2$?", "F", ["3", "4", "5"])
    assert refused == "F not in: 3 | 4 | 5"
    refused = open_one("Choose all solutions of $x^2=1$.", "A, C", ["1", "2", "-1"])
    assert refused == "A, C names several options"


def test_numbered_values_behind_a_question() -> None:
    question = "What is the mean of 6, 10 and 14? (1) 8 (2) 10 (3) 12 (4) 14"
    assert open_one(question, "2") == ("What is the mean of 6, 10 and 14?", "10")
    assert open_one(question, "10") == ("What is the mean of 6, 10 and 14?", "10")
    refused = open_one(question, "E")
    assert refused == "E not in: 8 | 10 | 12 | 14"
    assert open_one("Find the sum of the numbers: (1) 6 (2) 7 (3) 8", "21") is None


ARRAY = r"$\left(\begin{array}{cc} %s & 2 \\ 3 & 4 \end{array}\right)$"
CASES = r"$\left\{\begin{array}{l}x=%s\\y=2\end{array}\right.$"
TABLE = r"\begin{tabular}{c} %s \\ 7 \end{tabular}"
BARE = r"\begin{array}{cc} %s & 2 \\ 3 & 4 \end{array}"
PMATRIX = r"$\begin{pmatrix} %s & 2 \\ 3 & 4 \end{pmatrix}$"


@pytest.mark.parametrize("form", [ARRAY, CASES, TABLE, BARE, PMATRIX])
@pytest.mark.parametrize("listed", [True, False])
def test_what_an_option_holds_stays_in_it(form: str, listed: bool) -> None:
    options = [form % number for number in (1, 5, 6, 7)]
    inline = "" if listed else " ".join(f"({letter}) {text}" for letter, text in zip("ABCD", options, strict=True))
    found = parse_choice(f"What is $A$? {inline}".strip(), "B", options if listed else None)
    assert isinstance(found, ParsedChoice)
    assert found.options[found.index].strip("$") == options[1].strip("$")


@pytest.mark.parametrize("name", ["array", "tabular", "align*", "enumerate"])
def test_layout_around_the_options_still_goes(name: str) -> None:
    columns = "{cccc}" if name in ("array", "tabular") else ""
    rows = "(A) 3 & (B) 4 \\\\ (C) 5 & (D) 6"
    text = f"What is $2+2$? \\begin{{{name}}}{columns} {rows} \\end{{{name}}}"
    for letter, answer in zip("ABCD", "3456", strict=True):
        assert open_one(text, letter) == ("What is $2+2$?", answer)


@pytest.mark.parametrize(
    "statement",
    [
        "Which of these numbers is prime? (A) 4 (B) 7 (C) 9",
        "What could $x$ be? (A) 4 (B) 7 (C) 9",
        "What is the shape? (A) a square (B) 7 (C) a circle",
        "下列哪个数是质数？ A. 4 B. 7 C. 9",
    ],
)
def test_a_question_that_needs_its_options_is_not_opened(statement: str) -> None:
    assert isinstance(parse_choice(statement, "B"), ParsedChoice)
    assert open_one(statement, "B") is None
