"""What a statement says about the form of its answer, and what that decides: with it and without it."""

from __future__ import annotations

from typing import Any

import pytest

from curation.records import Outcome
from curation.verify import answers
from curation.verify.answers.policy import Rounding
from curation.verify.answers.question import (
    MAX_STATEMENT_CHARS,
    NOTHING_ASKED,
    AskedValues,
    QuestionForm,
    read_question,
)
from curation.verify.math_judge import JudgeTask, MathJudge, Response
from tests.curation.verify.answers.corpus import table

METRES = "How long is it in metres?"
TWO_PLACES = "What is $x$, to two decimal places?"


@pytest.mark.parametrize("row", table("statements"), ids=lambda row: row["statement"][:40])
def test_what_is_read_of_a_statement(row: dict[str, Any]) -> None:
    """The rest of a form is empty; where ``is_percent`` is not in the table it may be False or None."""
    expected = {name: value for name, value in row.items() if name not in ("lang", "statement")}
    if "values" in expected:
        expected["values"] = AskedValues[expected["values"]]
    if "rounding" in expected:
        expected["rounding"] = Rounding(**expected["rounding"])
    expected |= {name: frozenset(expected.get(name, ())) for name in ("integers", "positive")}
    expected["options"] = tuple(expected.get("options", ()))
    asked = read_question(row["statement"], row["lang"])
    if "is_percent" not in row:
        assert asked.is_percent is not True
        expected["is_percent"] = asked.is_percent
    assert asked == QuestionForm(**expected)


def test_a_statement_that_asks_for_no_form_changes_nothing() -> None:
    statement = "Think of a percent sign."
    assert read_question(statement) == QuestionForm() == NOTHING_ASKED
    for row in [row for row in table("pairs") if row["kind"] in ("equal", "unequal")][::5]:
        gold, pred = row["gold"], row["pred"]
        assert answers.compare(gold, pred, statement=statement) == answers.compare(gold, pred)


def test_long_and_hostile_statements_are_read_quickly() -> None:
    pieces = ("in ", "how many ", "a, ", "____ ", "$", "(", "find $", "positive integers a, b and ", "\\text{", "多少")
    for piece in pieces:
        assert isinstance(read_question(piece * MAX_STATEMENT_CHARS), QuestionForm)


def test_the_judge_is_told_the_statement() -> None:
    responses = (
        Response(r"so \boxed{3100 cm}", None),
        Response(r"\boxed{31\text{ km}}", None),
        Response(None, "3.1e1"),
    )
    with MathJudge(workers=1) as judge:
        (told,) = judge.judge([JudgeTask("p", "31", "en", responses, statement=METRES)])
        again = judge.submit(JudgeTask("p", "31", "en", responses, statement=METRES)).result()
        (untold,) = judge.judge([JudgeTask("p", "31", "en", responses)])
        quick = judge.submit(JudgeTask("p", "3.14159", "en", (), statement=TWO_PLACES), ["3.14", "3.1"]).result()
    assert [verdict.outcome for verdict in told.verdicts] == [Outcome.CORRECT, Outcome.WRONG, Outcome.CORRECT]
    assert told.verdicts == again
    assert "doubtful" in told.verdicts[1].method
    assert [verdict.outcome for verdict in untold.verdicts] == [Outcome.WRONG, Outcome.CORRECT, Outcome.CORRECT]
    assert [verdict.outcome for verdict in quick] == [Outcome.CORRECT, Outcome.WRONG]
