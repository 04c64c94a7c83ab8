"""A model's rewriting is believed only where nothing was lost, changed or given away."""

from __future__ import annotations

import pytest

from curation.questions.rewriting import REWRITING, ProposedRewriting, accept_rewriting, read_rewriting
from curation.records import Domain, PromptRequest

QUESTION = "Which of the following numbers is divisible by 7?"
OPTIONS = ("45", "56", "65", "75")
LISTED = "Which one of the numbers 45, 56, 65 and 75 is divisible by 7?"


def accepted(
    statement: str, question: str = QUESTION, options: tuple[str, ...] = OPTIONS, verified: bool = True
) -> dict[str, str] | str:
    return accept_rewriting(question, options, 1, statement, verified=verified)


def test_all_options_may_stand_in_the_question() -> None:
    assert accepted(LISTED) == {"statement": LISTED, "answer": "56"}


def test_a_question_without_its_options() -> None:
    question = "A tank holds 90 litres and loses 7 litres an hour. Which is closest to the litres left after 4 hours?"
    open_one = "A tank holds 90 litres and loses 7 litres an hour. How many litres are left after 4 hours?"
    assert accepted(open_one, question, ("50", "62", "70")) == {"statement": open_one, "answer": "62"}


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("Which of the following is divisible by 7?", "points at options"),
        ("Which one of the numbers 45, 56 and 65 is divisible by 7?", "gives the answer away"),
        ("Which one of the numbers 45, 56, 65 and 75 is divisible by 8?", "the numbers changed"),
        ("Which number between 46 and 62 is divisible by 7?", "the numbers changed"),
        ("Which is divisible by 7? (A) 45 (B) 56 (C) 65 (D) 75", "labelled options"),
        (LISTED + " The correct answer is 56.", "marks the answer"),
        ("The numbers 45, 56, 65 and 75 lie on the table next to 7.", "asks nothing"),
        ("45, 56, 65, 75 中哪一个数能被 7 整除？", "the language changed"),
    ],
)
def test_what_was_lost_changed_or_given_away_is_refused(statement: str, why: str) -> None:
    found = accepted(statement)
    assert isinstance(found, str)
    assert why in found


def test_an_answer_that_does_not_verify_is_refused() -> None:
    assert isinstance(accepted(LISTED, verified=False), str)


def test_a_rewriting_is_read_behind_the_thoughts() -> None:
    text = f"<think><problem>no</problem></think><problem>\n{LISTED}\n</problem>\n7 * 8 = 56, so \\boxed{{56}}."
    found = read_rewriting(text)
    assert found == ProposedRewriting(LISTED, "7 * 8 = 56, so \\boxed{56}.")


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "<problem>NONE</problem>",
        "<problem> </problem>",
        "I cannot.",
        "<problem>x",
        "<think><problem>x</problem>",
    ],
)
def test_no_rewriting_is_none(text: str | None) -> None:
    assert read_rewriting(text) is None


def test_the_prompt_holds_the_problem_its_options_and_the_right_one() -> None:
    details = {"options": "\n".join(OPTIONS), "answer": "56"}
    said = REWRITING.prompt.messages(PromptRequest("x", QUESTION, Domain.MATH, "en", details))[-1]["content"]
    assert QUESTION in said
    assert "45\n56\n65\n75" in said
    assert said.endswith("The right one:\n56")
