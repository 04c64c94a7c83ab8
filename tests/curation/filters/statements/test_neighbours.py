"""Words that hit ordinary problems once: what looks like a defect and is none, beside what is one."""

from __future__ import annotations

import polars as pl
import pytest

from curation.filters.statements import classify

KEPT: dict[str, list[tuple[str, str]]] = {
    "figures": [
        ("What is the area of the region below the graph of $y=x^2$ and above the $x$-axis for $0<x<3$?", "9"),
        ("How many lattice points lie above the graph of $y=x^2$ and below the line $y=4$?", "3"),
        ("How many unit squares lie entirely below the graph and in the first quadrant?", "888"),
        ("The graph of $y=2x+1$ is shown below. What is its slope?", "2"),
        ("The graph of $f(x)=\\frac{1}{x-3}$ is pictured above. Where is its vertical asymptote?", "3"),
        ("The area above the curve and below the graphs of $f$ and $g$ is 3. Find the area of its half.", "1.5"),
    ],
    "signing up": [
        ("How many more passengers must sign up for the trip before the company makes a profit?", "13"),
        ("120 students sign up to play chess and 30 sign in to watch. How many are there in all?", "150"),
        ("Of 80 people, 30 subscribe to a newspaper and 50 to a journal. How many subscribe to both, at least?", "0"),
        ("Subscribe to 3 magazines at $4 each. What is the cost?", "12"),
        ("Each time Ann clicks on the button the number doubles. What is 3 after 4 clicks?", "48"),
        ("Translate the following into an expression and find its value for $x=3$: twice $x$ plus one.", "7"),
    ],
    "derivations": [
        ("Given $a_1=1$ and $a_{n+1}=2a_n$, derive the general term of the sequence.", "2^{n-1}"),
        ("Derive the expected value of $X$ in terms of $n$.", "n/2"),
        ("A die is thrown twice. Deduce the probability that both are six.", "1/36"),
    ],
    "blanks": [
        ("The sum of 3 and 4, doubled and lowered by 1, 2 is ________.", "12, 13"),
        ("Fill in: the roots of $x^2=4$ are ____________.", "2, -2"),
    ],
    "tasks": [
        ("Distribute: $3(x+2)$", "3x+6"),
        ("Completely factor the expression: $$x^8-256$$", "(x^4+16)(x^2+4)(x+2)(x-2)"),
        ("Fully factor the following expression: $2x^2-8$", "2(x+2)(x-2)"),
        ("Rank the sizes from best to worst.", "MSL"),
        ("The share of people that travel by car or bus is...", "60"),
        ("$$40 \\times 50 \\times 60 = 4 \\times 5\\times 6 \\times$$．", "1000"),
        ("$$4x-x-12=51$$", "21"),
        ("280/4+360．", "430"),
        ("$\\frac{1}{2}+\\frac{1}{3}$", "5/6"),
        ("The ratio $PA:AB$ is:\n$\\textbf{(A)}\\ 1:3 \\qquad \\textbf{(B)}\\ 3:4$ in all cases", "3:1"),
    ],
    "parts": [
        ("If $f(1)=\\frac{f(2)}{512}$ and $\\frac{1}{f(1)}=2 f(2)$, compute $f(f(4))$.", "4096"),
        ("Let $f(1) = f(2) + 3$ and $f(2) = 4$. Then $g(1)=2f(2)$; compute $f(1)+g(1)$.", "15"),
        ("If $f(a)=f(b)$ and $h(a)=2h(b)$, compute $f(a)-f(b)$.", "0"),
    ],
    "questions": [
        ("What is the probability? The answer is $\\frac{m}{n}$ in lowest terms. What is $m+n$?", "7"),
        ("What is the length? It can be written as $a\\sqrt{b}-c$. What is $a+b+c$?", "9"),
        ("How many ways are there? Write it as $m \\cdot 10^n$. What is the value of $100m - n$?", "9"),
        ("What is the area of a triangle with sides 3, 4, 5? If it is written as $k$, what is $k^2$?", "36"),
        ("What is the area of a square of side 3? Let $k$ be this area. What is $k+1$?", "10"),
        ("How many primes are below 20? Call this number N. What is N^2?", "64"),
    ],
    "truth": [("There are 7 more free response than true/false. How many true/false questions are there?", "6")],
    "answers": [
        ("How much money is left if each costs $p$ dollars?", "30-8p"),
        ("What is the quotient?", "\\frac12"),
        ("What is the angle?", "90^\\circ"),
        ("What is the set?", "\\mathbb{R}^+"),
        ("Which sign stands between 3 and 4?", "<"),
        ("What is the angle of a clock?", "58{}^{}\\circ"),
        ("What is the set of the roots?", "\\left\\{1,2\\right\\}"),
    ],
    "whole formulas": [
        ("Evaluate $\\sqrt{\\frac{3}{4} for the given number.", "1"),
        ("It costs $5 to enter. What is $x^{2}+1$ for the number of dollars.", "26"),
    ],
}
GONE: dict[str, list[tuple[str, str]]] = {
    "proof": [
        ("Deduce that $x=1$.", "1"),
        ("Let $n$ be even. Hence, derive that $n^2$ is even.", "x"),
    ],
    "multi_part": [
        ("(a) Find $x$. (b) Find $y$.", "1"),
        ("Let $f(1)=2$. (1) Find $f(2)$. (2) Find $f(3)$.", "1"),
        ("What is the sum of 3 and 4? What is the product of 3 and 4?", "7"),
        ("How many apples are there? How many pears are there?", "7"),
        ("What is the perimeter of a square of side 3? What is its area?", "12"),
        ("What is $x$ if $3x=9$? Let $k$ be the number of pears. What is the number of apples?", "12"),
        ("The sum is ____ and the product is ____.", "3, 4"),
    ],
    "textual_answer": [
        ("What is the sum of the series?", "Prove that the sum equals $(\\ln 2)^2$."),
        ("For which $x$ does it converge?", "Show that it converges if and only if $x < 25$."),
    ],
    "unverifiable_answer": [
        ("What is the angle?", answer)
        for answer in (
            "90^", "$90^$", "(90^)", "90^,", "90^{}", "5_", "3 \\times", "30^ cm", "60^^", "\\frac{}{2}", "\\frac{3}",
            "\\sqrt", "\\sqrt{}", "x=", "12/", "3 +", "90\\", "3^{", "\\frac{1}{2", "\\left(3", "90^{\\circ",
        )
    ],
}  # fmt: skip


def reasons(rows: list[tuple[str, str]], lang: str = "en") -> list[str | None]:
    frame = pl.DataFrame(rows, schema=["statement", "answer"], orient="row").with_columns(lang=pl.lit(lang))
    return classify(frame)["reason"].to_list()


@pytest.mark.parametrize("about", KEPT)
def test_what_only_looks_like_a_defect_stays(about: str) -> None:
    assert [row for row, reason in zip(KEPT[about], reasons(KEPT[about]), strict=True) if reason is not None] == []


@pytest.mark.parametrize("reason", GONE)
def test_the_defect_itself_still_goes(reason: str) -> None:
    found = zip(GONE[reason], reasons(GONE[reason]), strict=True)
    assert [(row, why) for row, why in found if why != reason] == []


SEVERAL_ASKED = [
    ("Find the radius and interval of convergence of the series.", "$R=1, I=(-1,1)$"),
    ("Find the exact value of the cosine and sine of the angle $\\pi$.", "$\\cos(\\pi)=-1, \\sin(\\pi)=0$"),
    ("State the domain and range of $f(x)=x^2$.", "domain: $\\mathbb{R}$, range: $[0, \\infty)$"),
    ("Find the distance $d$ between the points and the midpoint $M$ of their segment.", "$d=5, M=(1,2)$"),
    ("A car goes there and back. Find its speed and the time it needs.", "30 mph, 2 hours"),
    ("The rectangle has area 48 and perimeter 32. Find its length and width.", "12 and 4"),
    ("Two pipes fill a tank together. How long would it take each working alone?", "6, 12"),
    ("Tickets cost 4 and 6 dollars. How many of each type were sold?", "7, 12"),
    ("Tom had dimes and nickels. How many dimes and how many nickels had he?", "19"),
    ("What is the warmest temperature of the day? When does this happen?", "64 at 2 PM"),
    ("When does the rocket reach its maximum height? What is its maximum height?", "500"),
    ("Let $X$ be a die. Find $V(X)$ and $D(X)$.", "$V(X)=2, D(X)=1$"),
    ("The sum of 2 numbers is 10. Find the smaller number. Find the larger number.", "4, 6"),
    ("The line is moved. What are the values of $p$ and $q$?", "3, 4"),
    ("Find all local maxima and minima of $f$.", "min. at 1, max. at 2"),
]
ONE_ASKED = [
    ("Find the slope of the line through the points $(13,-2)$ and $(7,7)$.", "$-\\frac{3}{2}$"),
    ("Find the area between the curves $y=x$ and $y=x^2$.", "1/6"),
    ("Find the difference of the length and the width.", "4"),
    ("Find the mean and variance of $X$. Return the answers as a list.", "0, 1"),
    ("Find all numbers whose mean and median are equal.", "3, 5"),
    ("How many apples does each of them get?", "1,250"),
    ("Find the points where the circle and the line meet.", "$(1,2)$ and $(3,4)$"),
    ("How many more pages did Ann read than Bob, and who read how many?", "12"),
]


@pytest.mark.parametrize(("statement", "answer"), SEVERAL_ASKED)
def test_two_quantities_asked_for_are_two_answers(statement: str, answer: str) -> None:
    assert reasons([(statement, answer)]) == ["multi_part"]


@pytest.mark.parametrize(("statement", "answer"), ONE_ASKED)
def test_one_quantity_of_two_things_is_one_answer(statement: str, answer: str) -> None:
    assert reasons([(statement, answer)]) == [None]


@pytest.mark.parametrize(
    ("lang", "statement", "answer", "reason"),
    [
        ("zh", "280/4+360．", "430", None),
        ("zh", "已知 $f(1)=3$，求 $f(2)$ 的值，其中 $f(2)=2f(1)$。", "6", None),
        ("zh", "概率是多少？写成 $m/n$，求 $m+n$ 是多少？", "7", None),
        ("zh", "（1）求 $x$；（2）求 $y$。", "3", "multi_part"),
    ],
)
def test_the_same_in_other_languages(lang: str, statement: str, answer: str, reason: str | None) -> None:
    assert reasons([(statement, answer)], lang) == [reason]


@pytest.mark.parametrize("marks", [("\\( ", " \\)"), ("\\[ ", " \\]"), ("$", "$"), ("$$", "$$")])
def test_no_opened_formula_is_left_by_the_options(marks: tuple[str, str]) -> None:
    opening, closing = marks
    options = " \\qquad ".join(
        f"\\textbf{{({letter})}}\\ {number}" for letter, number in zip("ABCD", "3456", strict=True)
    )
    rows = pl.DataFrame({"statement": [f"What is $2+2$? {opening}{options}{closing}"], "answer": ["D"]})
    line = classify(rows).row(0, named=True)
    assert (line["statement"], line["answer"]) == ("What is $2+2$?", "6")


LISTS = (
    "\\begin{enumerate}[label=(\\Alph*)] \\item 4 \\item 5 \\item 6 \\end{enumerate}",
    "\\begin{enumerate}[(A)]\n\\item 4\n\\item 5\n\\item 6\n\\end{enumerate}",
    "\\begin{enumerate}\\item[A.] 4 \\item[B.] 5 \\item[C.] 6\\end{enumerate}",
    "\\begin{oneparchoices}\\choice 4 \\CorrectChoice 5 \\choice 6\\end{oneparchoices}",
    "\\begin{choices}\\choice 4 \\choice 5 \\choice 6\\end{choices}",
    "\\begin{tasks}(3) \\task 4 \\task 5 \\task 6 \\end{tasks}",
    "**A)** 4 **B)** 5 **C)** 6",
    "\\(A) 4 \\(B) 5 \\(C) 6",
)


@pytest.mark.parametrize("options", LISTS)
def test_options_whose_letters_latex_or_markdown_sets_are_options(options: str) -> None:
    line = classify(pl.DataFrame({"statement": [f"What is 2+3?\n{options}"], "answer": ["B"]})).row(0, named=True)
    assert (line["statement"], line["answer"], line["reason"]) == ("What is 2+3?", "5", None)


def test_a_list_that_is_the_problem_stays() -> None:
    text = "Let $f(x)=x$. \\begin{enumerate} \\item $f(1)$ \\item $f(2)$ \\end{enumerate} Find the sum of both values."
    assert classify(pl.DataFrame({"statement": [text], "answer": ["3"]})).row(0, named=True)["statement"] == text


def test_a_heading_that_begins_behind_the_options_is_no_cut() -> None:
    text = "12. 已知 $a=2$, 则 $a+1=$（）\nA. 18 个\nB. 3\n\n\\section{\n"
    line = classify(pl.DataFrame({"statement": [text], "answer": ["B"], "lang": ["zh"]})).row(0, named=True)
    assert (line["answer"], line["reason"]) == ("3", None)
