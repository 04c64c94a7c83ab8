"""What is taken out of texts: numbering, points, contests, debris of LaTeX and HTML; what belongs to them stays."""

from __future__ import annotations

import random

import polars as pl

from curation.filters.statements.cleaning import clean_text, has_debris
from curation.filters.statements.filtering import classify
from tests.curation.tables import check_table


def clean(text: str) -> str:
    frame = pl.DataFrame({"text": [text]})
    return str(clean_text(frame, "text")["text"].item()) if frame.select(has_debris("text")).item() else text


def test_clutter_goes_and_what_belongs_to_the_problem_stays() -> None:
    check_table("clutter", clean)
    check_table("no clutter", clean)


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
