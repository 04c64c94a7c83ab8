"""A model's rewriting is believed only where nothing was lost, changed or given away."""

from __future__ import annotations

import pytest

from curation.questions.rewriting import ProposedRewriting, accept_rewriting, read_rewriting

QUESTION = "Which of the following numbers is divisible by 7?"
OPTIONS = ("45", "56", "65", "75")
LISTED = "Which one of the numbers 45, 56, 65 and 75 is divisible by 7?"


def accepted(
    statement: str, question: str = QUESTION, options: tuple[str, ...] = OPTIONS, verified: bool = True
) -> dict[str, str] | str:
    return accept_rewriting(question, options, 1, statement, verified=verified)


def test_all_options_may_stand_in_the_question() -> None:
    assert accepted(LISTED) == {"statement": LISTED, "answer": "56"}


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
