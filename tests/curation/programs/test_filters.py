"""The format filter for code: each rule with its words, and rows that must stay."""

import polars as pl

from curation.programs.filters import clean_statement, drop_reason, filter_programs
from curation.records import DROPPED, JUDGING, PROBLEM, SOLUTION, TEST
from tests.curation.tables import check_table, frame

PLAIN = "Given a list of whole numbers, print their sum on one line. The first line holds how many there are."
NOTHING = dict.fromkeys(("interactive", "files", "figures", "no_function", "checker", "not_usable"))
ABOUT = {**NOTHING, "solutions": 2, "tests": 3}


def test_each_rule() -> None:
    def reason(statement: str | None, more: dict[str, object]) -> str | None:
        verdict = drop_reason(statement, {**ABOUT, **more})
        assert verdict is None or verdict[1]
        return verdict[0] if verdict else None

    check_table("programs filtered", reason)


def test_cleaning_leaves_fenced_blocks_alone() -> None:
    text = "<p>Add <b>them</b>.</p>\n\n\n\nAuthor: me\n\n```\n1 <b> 2\n\n\n\n3\n```"
    assert clean_statement(text) == "Add them.\n\n```\n1 <b> 2\n\n\n\n3\n```"


def test_rows_are_parted_and_the_raw_statement_stays_beside() -> None:
    rows = frame(PROBLEM, {"id": "a", "statement": f"<p>{PLAIN}</p>"}, {"id": "b", "statement": ""}, domain="code")
    tests = pl.DataFrame([("a", 0, "1", "1", "given")], schema=TEST, orient="row")
    solutions = pl.DataFrame([("a", 0, "python", "x", True, None)], schema=SOLUTION, orient="row")
    judging = frame(JUDGING, {"problem": "a"}, {"problem": "b"})
    kept, dropped = filter_programs(rows, tests, solutions, judging)
    assert (kept.schema, dropped.schema) == (PROBLEM, DROPPED)
    assert kept.select("id", "statement", "raw_statement").rows() == [("a", PLAIN, f"<p>{PLAIN}</p>")]
    assert dropped["reason"].to_list() == ["missing_statement"]
