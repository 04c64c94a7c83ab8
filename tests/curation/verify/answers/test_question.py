"""What a statement says about the form of its answer, and what that decides: with it and without it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from curation.records import Outcome, SourceError
from curation.verify import answers
from curation.verify.answers.policy import Rounding
from curation.verify.answers.question import MAX_STATEMENT_CHARS, NOTHING_ASKED, QuestionForm, read_question
from curation.verify.math_judge import JudgeTask, MathJudge, Response
from curation.verify.pairs import verify_pairs
from tests.curation.verify.answers.statements import STATEMENTS
from tests.curation.verify.answers.test_pairs import EQUAL, UNEQUAL

RIGHT, DOUBTFUL, WRONG = "right", "doubtful", "wrong"

FIND, METRES, PERCENT = "Find $m+n$.", "How long is it in metres?", "What percentage of them is red?"
TWO_PLACES, FRACTION = "What is $x$, to two decimal places?", "Find $x$ as a common fraction."
OPTIONS = "Which one is it?\nA) 11\nB) 12\nC) $\\frac{27}{2}$\nD) $y = 3$"
PAIR, INTERVAL = "Find the ordered pair $(x,y)$.", "Write the solution in interval notation."

VERDICTS = [
    # the quantity
    (FIND, "113", "m+n=113", RIGHT, RIGHT),
    (FIND, "113", "$n + m = 113$", RIGHT, RIGHT),
    (FIND, "m+n=113", "113", RIGHT, RIGHT),
    (FIND, "113", "m+n=114", WRONG, WRONG),
    (FIND, "113", "m=113", RIGHT, DOUBTFUL),
    (FIND, "113", "m-n=113", RIGHT, DOUBTFUL),
    (FIND, "113", "100+13=113", RIGHT, RIGHT),
    (r"Find $(x-y)^2$.", "9", "(x-y)^2 = 9", WRONG, RIGHT),
    (FIND, "113", r"\frac{100}{13}", WRONG, WRONG),
    (FIND, "113", "m=100, n=13", WRONG, WRONG),
    (r"Find $\det A$.", "5", r"\det A = 5", RIGHT, RIGHT),
    (r"Compute $\binom{8}{4}$.", "70", r"\binom{8}{4}", RIGHT, DOUBTFUL),
    (r"Compute $\binom{8}{4}$.", "70", r"\dbinom{8}{4} = 70", RIGHT, RIGHT),
    (r"Compute $\binom{8}{4}$.", r"\binom{8}{4}", r"\binom84", RIGHT, RIGHT),
    ("Factor $x^2-1$.", "(x-1)(x+1)", "x^2-1", RIGHT, DOUBTFUL),
    ("Factor $x^2-1$.", "(x-1)(x+1)", "(x+1)(x-1)", RIGHT, RIGHT),
    (r"Find $\sum_{n=1}^{4} a_n$.", "10", r"\sum_{n=1}^4 a_n = 10", RIGHT, RIGHT),
    (r"Find $\sum_{n=1}^{4} a_n$.", "10", r"\sum_{n=10", DOUBTFUL, DOUBTFUL),
    (r"Compute $\sin 30^\circ$. (A) 1 (B) $\frac12$", "B", r"\sin 30^\circ", WRONG, DOUBTFUL),
    (r"Write $\frac14$ as a decimal.", "0.25", r"\frac{1}{4}", RIGHT, RIGHT),  # plain numbers are their value
    (r"Write $0.\overline{3}$ as a fraction.", r"\frac13", r"0.\overline{3}", RIGHT, DOUBTFUL),
    # the unit
    (METRES, "31", r"31\text{ m}", RIGHT, RIGHT),
    (METRES, "31", "31 m", WRONG, RIGHT),
    (METRES, "31 m", "31", WRONG, RIGHT),
    (METRES, "31", "3100 cm", WRONG, RIGHT),
    (METRES, "31", "31 km", RIGHT, DOUBTFUL),
    (METRES, "31", r"31\text{ m}^2", RIGHT, DOUBTFUL),
    (METRES, "31", "31 apples", RIGHT, RIGHT),
    (METRES, "31 m", "3100 cm", RIGHT, RIGHT),
    ("How long is it in cm?", "31 m", "3100", WRONG, RIGHT),
    ("How many minutes?", "120", "2 hours", WRONG, RIGHT),
    ("How many minutes?", "120", "120 hours", RIGHT, DOUBTFUL),
    ("How many dollars does it cost?", "1.25", "125 cents", WRONG, RIGHT),
    ("How many miles does he drive per hour?", "60", "60 miles per hour", RIGHT, RIGHT),
    ("Find the angle in radians.", r"\frac{\pi}{3}", r"60^\circ", RIGHT, RIGHT),
    ("Find the angle in degrees.", "60", r"\frac{\pi}{3}", WRONG, WRONG),
    # percent
    (PERCENT, "50", r"50\%", RIGHT, RIGHT),
    (PERCENT, r"50\%", "50", RIGHT, RIGHT),
    (PERCENT, r"50\%", "0.5", RIGHT, DOUBTFUL),
    ("Find $x$.", "50", r"50\%", RIGHT, DOUBTFUL),
    ("Find $x$.", r"50\%", "50", RIGHT, DOUBTFUL),
    ("What is the probability?", "0.5", r"50\%", RIGHT, RIGHT),
    ("He saves 20%. What is the discount?", "50", r"50\%", RIGHT, RIGHT),
    # rounding, and the form asked for
    (TWO_PLACES, r"\pi", "3.14", RIGHT, RIGHT),
    (TWO_PLACES, r"\pi", "3.1", DOUBTFUL, DOUBTFUL),
    (TWO_PLACES, r"\pi", "3.15", WRONG, WRONG),
    (TWO_PLACES, "3.14", r"\pi", RIGHT, RIGHT),
    (TWO_PLACES, "3.14", "3.1416", DOUBTFUL, RIGHT),
    (TWO_PLACES, "3.14159", "3.14", DOUBTFUL, RIGHT),
    (TWO_PLACES, "3.14", "3.15", WRONG, WRONG),
    (TWO_PLACES, r"\frac23", "0.67", DOUBTFUL, RIGHT),
    (TWO_PLACES, r"\frac23", "0.66", WRONG, WRONG),
    ("What is it to 4 decimal places?", r"\pi", "3.1415", RIGHT, DOUBTFUL),
    ("What is it to the nearest integer?", "5042", r"\frac{15840}{\pi}", WRONG, DOUBTFUL),
    ("What is it to 3 significant figures?", r"\frac{1}{700}", "0.00143", RIGHT, RIGHT),
    ("What is it to 2 significant figures?", r"\frac{1}{700}", "0.0014", DOUBTFUL, RIGHT),
    (FRACTION, r"\frac13", "0.333", RIGHT, DOUBTFUL),
    (FRACTION, r"\frac12", "0.5", RIGHT, RIGHT),
    (FRACTION, r"\frac12", r"\frac24", RIGHT, RIGHT),
    ("Give it in simplest radical form.", r"2\sqrt{3}", r"\sqrt{12}", RIGHT, RIGHT),
    (r"What is it in terms of $\pi$?", r"9\pi", "28.27", RIGHT, DOUBTFUL),
    # options
    (OPTIONS, "B", "12", WRONG, RIGHT),
    (OPTIONS, "12", "(B)", WRONG, RIGHT),
    (OPTIONS, "B", "11", WRONG, WRONG),
    (OPTIONS, "12", "A", WRONG, WRONG),
    (OPTIONS, "C", "13.5", WRONG, RIGHT),
    ("Which? A) f(5) = -5 B) 5 is a root", "A", "-5", WRONG, DOUBTFUL),
    ("Which? A) 5 cm B) 5 km", "A", "5", WRONG, DOUBTFUL),
    (OPTIONS, "B", "C", WRONG, WRONG),
    # one value or several, tuples and intervals
    (PAIR, "2, 3", "3, 2", RIGHT, DOUBTFUL),
    (PAIR, "(2, 3)", "2, 3", RIGHT, RIGHT),
    (PAIR, "(1, 2)", "1 < x < 2", RIGHT, DOUBTFUL),
    (INTERVAL, "(1, 2)", "1 < x < 2", RIGHT, RIGHT),
    (INTERVAL, "(1, 2)", "1, 2", RIGHT, DOUBTFUL),
    ("Find one solution.", "2, 3", "3", WRONG, DOUBTFUL),
    ("Find all solutions.", "2, 3", "3", WRONG, WRONG),
    ("Which closed interval is it?", "[1, 2]", "[1, 2)", DOUBTFUL, WRONG),
    ("Which open interval is it?", "[1, 2]", "[1, 2)", DOUBTFUL, DOUBTFUL),
    # variables
    ("Let $a$ and $b$ be positive real numbers. Simplify.", r"a\sqrt{b}", r"\sqrt{a^2b}", DOUBTFUL, RIGHT),
    ("Let $b$ be positive. Simplify.", r"a\sqrt{b}", r"\sqrt{a^2b}", DOUBTFUL, DOUBTFUL),
    ("Let $x$ be an integer. Simplify.", r"\lfloor x/2\rfloor", r"\lceil (x-1)/2\rceil", WRONG, RIGHT),
    ("Let $x$ be an integer. Simplify.", r"\lfloor x/2\rfloor", r"\lceil (x-2)/2\rceil", WRONG, WRONG),
    ("Let $x$ be an integer. Simplify.", r"\cos(2\pi x)", "1", WRONG, RIGHT),
    ("Let $x$ be an integer. Simplify.", r"\cos(\pi x)", "1", WRONG, WRONG),
    ("Let $x$ be a real number. Simplify.", r"\cos(2\pi x)", "1", WRONG, WRONG),
]


def word(comparison: answers.AnswerComparison) -> str:
    if comparison.outcome is Outcome.CORRECT:
        return RIGHT
    return DOUBTFUL if comparison.doubtful else WRONG


@pytest.mark.parametrize(("lang", "statement", "expected"), STATEMENTS)
def test_what_is_read_of_a_statement(lang: str, statement: str, expected: dict[str, Any]) -> None:
    asked = read_question(statement, lang)
    is_percent = asked.is_percent if "is_percent" in expected else None
    assert asked == QuestionForm(**{**expected, "is_percent": is_percent or asked.is_percent})
    assert asked.is_percent is not True or "is_percent" in expected


@pytest.mark.parametrize(("statement", "reference", "answer", "without", "asked"), VERDICTS)
def test_what_the_statement_decides(statement: str, reference: str, answer: str, without: str, asked: str) -> None:
    assert word(answers.compare(reference, answer)) == without
    assert word(answers.compare(reference, answer, statement=statement)) == asked
    assert word(answers.compare_texts(reference, answer, statement=statement)) == asked


def test_a_statement_that_asks_for_no_form_changes_nothing() -> None:
    statement = "Think of a percent sign."
    assert read_question(statement) == QuestionForm() == NOTHING_ASKED
    for line in [*EQUAL.strip().splitlines(), *UNEQUAL.strip().splitlines()][::5]:
        reference, _, answer = line.partition(" | ")
        assert answers.compare(reference, answer, statement=statement) == answers.compare(reference, answer)


def test_no_statement_is_read_as_none() -> None:
    assert read_question(None) is read_question("") is read_question(" \n") is NOTHING_ASKED


def test_long_and_hostile_statements_are_read_quickly() -> None:
    for piece in (
        "in ",
        "how many ",
        "a, ",
        "____ ",
        "$",
        "(",
        "find $",
        "positive integers a, b and ",
        "\\text{",
        "多少",
    ):
        assert isinstance(read_question(piece * MAX_STATEMENT_CHARS), QuestionForm)


def test_significant_digits_are_places() -> None:
    places = [Rounding(digits=3).places_of(Fraction(value)) for value in ("1/700", "0.5", "1", "9.99", "10", "123456")]
    assert places == [5, 3, 2, 2, 1, -3]


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


def test_pairs_may_have_a_statement(tmp_path: Path) -> None:
    rows = [
        {"gold": "31", "pred": "3100 cm", "statement": METRES},
        {"gold": "31", "pred": "3100 cm", "statement": None},
    ]
    pairs, verdicts = tmp_path / "pairs.jsonl", tmp_path / "verdicts.jsonl"
    pairs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    verify_pairs(pairs, verdicts, workers=1)
    judged = [json.loads(line) for line in verdicts.read_text().splitlines()]
    assert [row["equal"] for row in judged] == [True, False]
    assert [row["statement"] for row in judged] == [METRES, None]


def test_a_statement_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text('{"gold": "31", "pred": "31", "statement": 7}\n')
    with pytest.raises(SourceError, match='line 1: "statement" must be a string or null'):
        verify_pairs(tmp_path / "pairs.jsonl", tmp_path / "out.jsonl", workers=1)
