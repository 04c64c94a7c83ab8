"""What is taken out of texts: numbering, points, contests, debris of LaTeX and HTML; what belongs to them stays."""

from __future__ import annotations

import random

import polars as pl

from curation.filters.statements.cleaning import clean_text, has_debris
from curation.filters.statements.filtering import classify

CLUTTER = {
    "12. Compute $x + 1$.": "Compute $x + 1$.",
    "Problem 7. [5 points] A triangle has base 17.": "A triangle has base 17.",
    "**Problem 3.** Find $x + 1$.": "Find $x + 1$.",
    "\\textbf{Problem 3.} Find $x + 1$.": "Find $x + 1$.",
    "### Question\n\nA triangle has base 17.": "A triangle has base 17.",
    "(Autumn Cup 2014, Problem 3) Find the mean of 8 and 4.": "Find the mean of 8 and 4.",
    "（2019·全国卷）求 $x+1$ 的值。": "求 $x+1$ 的值。",
    "Find 199 mod 7. (3 marks)": "Find 199 mod 7.",
    "例3 已知 $x=1$，求 $y$。": "已知 $x=1$，求 $y$。",
    "【题目】求 $x$ 的值。": "求 $x$ 的值。",
    "求 $x$ 的值（5 分）": "求 $x$ 的值",
    "Задача 5. Найдите среднее.": "Найдите среднее.",
    "Find $x$.\n\\end{problem}\n\n\\noindent": "Find $x$.",
    "The value is \\underline{\\hspace{2cm}}.\\label{p1} \\par": "The value is ____.",
    "<p>What is $a<b$?</p>": "What is $a<b$?",
    "Tom\\textquotesingle s $$x\\textless{}3$$ &nbsp;&amp; more": "Tom's $$x<3$$  & more",
    "共有~\\uline{~~~~~~}~种": "共有____种",
}
STAYS = (
    "$\\parallel$ and $\\particle$ stay", "Find $x < 3$ and $y > 2$.", "1. Compute 6 * 7. 2. Compute 8 * 9.",
    "1) Find a. 2) Find b.", "3.5 is the mean of which numbers?", "(2x + 2015) is a power of what number?",
    "Question 3 has five marks. How many marks have 4 such questions?", "Exercise 12 with a radius of 5.",
    "5 points lie on a circle.", "[2, 3] is an interval of what length?", "第 3 天小明走了多少米？", "12. 5",
)  # fmt: skip


def test_clutter_goes_and_what_belongs_to_the_problem_stays() -> None:
    frame = pl.DataFrame({"text": [*CLUTTER, *STAYS]})
    assert frame[: len(CLUTTER)].select(has_debris("text").all()).item()
    assert clean_text(frame, "text")["text"].to_list() == [*CLUTTER.values(), *STAYS]


def test_an_answer_keeps_its_label() -> None:
    row = {"statement": "What is $3 + 5$? (1) 6 (2) 8 (3) 9", "answer": "(2) 8"}
    assert classify(pl.DataFrame([row]))["answer"].to_list() == ["8"]
    answers = pl.DataFrame({"answer": ["1. 5", "(3) 7"]})
    assert clean_text(answers, "answer", labels=False).equals(answers)


def test_cleaning_twice_is_cleaning_once() -> None:
    draw = random.Random(3)
    pieces = ("Find $x$", " \\noindent", "\n\\end{problem}", "~~ ~", "<br/>", "&lt;", "\\uline{~~}", "\\\\", "\n",
              "\\par ", " 求", "<b>", "12. (5 分) ")  # fmt: skip
    texts = ["".join(draw.choices(pieces, k=draw.randrange(12))) for _ in range(400)]
    once = clean_text(pl.DataFrame({"text": texts}), "text")
    assert clean_text(once, "text").equals(once)
