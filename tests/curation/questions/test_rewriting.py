"""A model's rewriting is believed only where nothing was lost, changed or given away."""

from __future__ import annotations

from curation.questions.rewriting import ProposedRewriting, accept, read_rewriting, refusal
from curation.verify.math_judge import MathJudge
from tests.curation.tables import check_refused, check_table

QUESTION = "Which of the following numbers is divisible by 7?"
OPTIONS = ("45", "56", "65", "75")
LISTED = "Which one of the numbers 45, 56, 65 and 75 is divisible by 7?"


def test_all_options_may_stand_in_the_question() -> None:
    assert refusal(QUESTION, OPTIONS, 1, LISTED) is None


def test_what_was_lost_changed_or_given_away_is_refused() -> None:
    def refused(statement: str) -> None:
        raise ValueError(refusal(QUESTION, OPTIONS, 1, statement) or "")

    check_refused("rewritings refused", refused, ValueError)


def test_the_writers_own_answer_must_be_the_right_option() -> None:
    row = {"id": "p", "choice": QUESTION, "options": list(OPTIONS), "right": 1, "lang": "en"}
    with MathJudge(1) as judge:
        assert accept(row, ProposedRewriting(LISTED, r"\boxed{56}"), judge) == {"statement": LISTED, "answer": "56"}
        assert accept(row, ProposedRewriting(LISTED, r"\boxed{65}"), judge) == (
            "the model's answer to its rewriting is not the right option"
        )


def test_a_rewriting_is_read_behind_the_thoughts() -> None:
    text = f"<think><problem>no</problem></think><problem>\n{LISTED}\n</problem>\n7 * 8 = 56, so \\boxed{{56}}."
    found = read_rewriting(text)
    assert found == ProposedRewriting(LISTED, "7 * 8 = 56, so \\boxed{56}.")


def test_no_rewriting_is_none() -> None:
    check_table("no rewriting", read_rewriting)
