"""The format filter for code: each rule with its words, and rows that must stay."""

import polars as pl
import pytest

from curation.programs.filters import clean_statement, drop_reason, filter_programs
from curation.records import DROPPED, JUDGING, PROBLEM, SOLUTION, TEST, DropReason

PLAIN = "Given a list of whole numbers, print their sum on one line. The first line holds how many there are."
ABOUT = {
    "interactive": False,
    "files": False,
    "figures": False,
    "no_function": None,
    "checker": None,
    "not_usable": None,
    "solutions": 2,
    "tests": 3,
}


@pytest.mark.parametrize(
    ("statement", "more", "reason"),
    [
        (None, {}, DropReason.MISSING_STATEMENT),
        ("Add.", {}, DropReason.MISSING_STATEMENT),
        (PLAIN, {"interactive": True}, DropReason.INTERACTIVE),
        (PLAIN, {"files": True}, DropReason.NEEDS_FILES),
        (PLAIN, {"no_function": "its tests are no calls"}, DropReason.ASKS_FUNCTION),
        (PLAIN, {"figures": True}, DropReason.MISSING_FIGURE),
        (f"{PLAIN} <img src='x.png'>", {}, DropReason.MISSING_FIGURE),
        (PLAIN, {"not_usable": "checker: it is written in Java"}, DropReason.SEVERAL_OUTPUTS),
        (PLAIN, {"solutions": 0}, DropReason.NO_SOLUTION),
        (PLAIN, {"tests": 0}, DropReason.TOO_FEW_TESTS),
        (f"{PLAIN} [image]", {}, DropReason.MISSING_FIGURE),
        (f"{PLAIN} This is an interactive problem, as shown in the figure. Print any answer.", {}, None),
        (PLAIN, {}, None),
    ],
)
def test_each_rule(statement: str | None, more: dict[str, object], reason: DropReason | None) -> None:
    verdict = drop_reason(statement, {**ABOUT, **more})
    assert (verdict[0] if verdict else None) == reason
    assert verdict is None or verdict[1]


def test_cleaning_leaves_fenced_blocks_alone() -> None:
    text = "<p>Add <b>them</b>.</p>\n\n\n\nAuthor: me\n\n```\n1 <b> 2\n\n\n\n3\n```"
    assert clean_statement(text) == "Add them.\n\n```\n1 <b> 2\n\n\n\n3\n```"


def test_rows_are_parted_and_the_raw_statement_stays_beside() -> None:
    base = dict.fromkeys(PROBLEM.names()) | {"domain": "code", "lang": "en", "source": "s", "weight": 1.0}
    rows = [base | {"id": "a", "row": 0, "statement": f"<p>{PLAIN}</p>"}, base | {"id": "b", "row": 1, "statement": ""}]
    frame = pl.DataFrame(rows, schema=PROBLEM)
    tests = pl.DataFrame([("a", 0, "1", "1", "given")], schema=TEST, orient="row")
    solutions = pl.DataFrame([("a", 0, "python", "x", True, None)], schema=SOLUTION, orient="row")
    judging = pl.DataFrame([{"problem": "a"}, {"problem": "b"}], schema=JUDGING)
    kept, dropped = filter_programs(frame, tests, solutions, judging)
    assert kept.schema == PROBLEM
    assert kept.select("id", "statement", "raw_statement").rows() == [("a", PLAIN, f"<p>{PLAIN}</p>")]
    assert dropped.schema == DROPPED
    assert dropped["reason"].to_list() == ["missing_statement"]
