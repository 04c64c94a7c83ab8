"""Limits that a statement puts in words."""

from __future__ import annotations

import pytest

from curation.programs.test_generation import StatedBound, infer_form, stated_bounds


@pytest.mark.parametrize(
    "words",
    [
        "The coefficients have absolute values bounded by $1\\,000$.",
        "All floating point numbers will be at most $1\\,000$ in absolute value.",
        "Its absolute value does not exceed 1000.",
    ],
)
def test_magnitudes(words: str) -> None:
    assert StatedBound(-1000, 1000) in stated_bounds(words)


def test_positive_columns_stay_so() -> None:
    statement = "Input\nA number $x$, at most 100 in absolute value, then a positive real number $d$, at most 100."
    form = infer_form(["-3.5 0.5\n", "7.25 1.0\n", "1.0 2.0\n"], statement, careful=False)
    assert form is not None
    assert [column.positive for column in form.columns.values()] == [False, True]
    assert form.columns[1].low == 0
    unsaid = infer_form(["3.5 0.5\n", "7.25 1.0\n", "1.0 2.0\n"], statement.replace("positive ", ""), careful=False)
    assert unsaid is not None
    assert not any(column.positive for column in unsaid.columns.values())


def test_a_limit_of_no_certain_column_is_tried_where_a_validator_looks() -> None:
    statement = "Input\nLines of numbers, at most 1000 in absolute value."
    inputs = ["5 7\n1 2\n", "6 9\n3 4\n", "1 -2\n5 5\n"]
    bold = infer_form(inputs, statement, careful=False)
    careful = infer_form(inputs, statement, careful=True)
    assert bold is not None
    assert (-1000, 1000) in {column.wide for column in bold.columns.values()}
    assert careful is None or all(column.wide is None for column in careful.columns.values())
