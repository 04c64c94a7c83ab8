"""Names that a question asks about and its text never introduces, and graphs that nothing but a figure gives."""

from __future__ import annotations

import polars as pl
import pytest

from curation.filters.statements import classify
from curation.filters.statements.undefined_names import undefined_name
from curation.records import DropReason

GONE = {
    "What is the area, in square units, of triangle $ABC$?": "ABC",
    "If $\\overline{AD} \\| \\overline{FG}$, how many degrees are in angle $EFG$?": "EFG",
    "Points $G$ and $H$ are midpoints of sides $CD$ and $EF$. What is the area of triangle $CDJ$?": "CDJ",
    "In the diagram, $PQR$ is a straight line. What is the value of $x$?": "x",
    "Lines $l$ and $m$ are parallel. $m\\angle A = 120^\\circ$. What is the number of degrees in $m\\angle C$?": "C",
}
KEPT = (
    "In triangle $ABC$, $AB = 3$, $AC = 6$. Find the length of angle bisector $\\overline{AD}$.",
    "What is the length of the shortest segment $\\overline{PQ}$ that is tangent to $C_1$ at $P$ and to $C_2$ at $Q$?",
    "A line meets $PQ$ at $R$. What is the most points $Y$ on it such that $\\angle PYR$ is half of $\\angle QYR$?",
    "What is the sum of the areas of the two squares $ABCD$ and $AEFG$, if $BE = 9$?",
    "What is the area of the square inscribed in the same $\\triangle ABC$ as shown in Figure 2 below?",
    "The ellipse $x^2/6+y^2/3=1$ is cut at $A$ and $B$. Find the area of $\\triangle OAB$.",
    "What is the value of $x$ in the equation $9^4+9^4+9^4=3^x$?",
    "The roots of $x^2+kx+5 = 0$ differ by $\\sqrt{61}$. Find the greatest possible value of $k$.",
    "$a$ is 25% more than 2022, and b is 20% less than $a$. What is the value of $b$?",
    "If $MATH$ is 35 points and $TEAM$ is 42 points, what is the value of $A$?",
    "Find $\\angle ABC$ if $A$, $B$ and $C$ lie on a circle in this order and arc $AC$ measures $80^\\circ$.",
)
GRAPHS = (
    "The graph of $y=f(x)$ for $-3\\le x\\le 3$ is shown below. On this interval, what is the range of $f(x)-x$?",
    "Below is a portion of the graph of a function, $y=u(x)$: What is the value of $u(2.33)$?",
    "A portion of the graph of a quadratic function $f(x)$ is shown below. What is the sum of its roots?",
)
NO_GRAPHS = (
    "Let $f(x) = 2x^2 - 3$. The graph of $y=f(x)$ is shown below. How many roots does $f$ have?",
    "Find $a$ if the graph of $y=f(x)$ is continuous (drawn without a break), where $f(x) = ax + 4$ for $x>2$ "
    "and $f(x) = 2x^2-3$ otherwise.",
    "The graph of $y=f(x)$ is shown below. How many roots has it?\n[asy]draw((0,0)--(3,4)--(5,-2)--(7,1));[/asy]",
)


def reasons(statements: tuple[str, ...]) -> list[tuple[str | None, str | None]]:
    rows = pl.DataFrame({"statement": statements, "answer": ["4"] * len(statements), "lang": ["en"] * len(statements)})
    return list(classify(rows).select("rule", "reason").iter_rows())


@pytest.mark.parametrize(("statement", "name"), GONE.items())
def test_a_name_that_is_never_introduced_is_found(statement: str, name: str) -> None:
    assert undefined_name(statement) == name
    assert reasons((statement,)) == [("undefined_name", DropReason.MISSING_FIGURE)]


@pytest.mark.parametrize("statement", KEPT)
def test_a_name_that_the_text_or_the_question_introduces_is_none(statement: str) -> None:
    assert undefined_name(statement) is None


def test_the_graph_of_a_function_that_is_not_given_is_missed() -> None:
    assert reasons(GRAPHS) == [("undrawn_graph", DropReason.MISSING_FIGURE)] * len(GRAPHS)


def test_a_graph_is_not_missed_where_its_function_or_its_code_is_given() -> None:
    assert [rule for rule, _ in reasons(NO_GRAPHS) if rule == "undrawn_graph"] == []
    assert reasons(NO_GRAPHS[-1:]) == [(None, None)]
