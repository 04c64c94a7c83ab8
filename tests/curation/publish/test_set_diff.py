"""Two published sets compared: every problem in one class, contents told apart from measurements."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from curation.publish.set_diff import CHANGES, PublishedTables, compare, count_changes, count_differing, rate_shift

ROW = {
    **{"id": pl.String(), "source": pl.String(), "row": pl.Int64(), "statement": pl.String(), "answer": pl.String()},
    **{"raw_statement": pl.String(), "policy": pl.String(), "judged": pl.Int32(), "pass_rate": pl.Float64()},
}


def published(
    *rows: dict[str, Any], dropped: dict[str, str] | None = None, tests: dict[str, int] | None = None
) -> PublishedTables:
    defaults = {"source": "s", "policy": "m@1", "judged": 16, "pass_rate": 0.5, "answer": "1"}
    filled = [
        {**dict.fromkeys(ROW), **defaults, "row": ord(row["id"][0]), "statement": row["id"], **row} for row in rows
    ]
    left = pl.DataFrame(
        {"id": list(dropped or {}), "reason": list((dropped or {}).values())},
        schema_overrides={"id": pl.String, "reason": pl.String},
    )
    digests = pl.DataFrame(
        {"problem": list(tests or {}), "digest": list((tests or {}).values())},
        schema={"problem": pl.String, "digest": pl.UInt64},
    )
    return PublishedTables(pl.DataFrame(filled, schema=ROW), left, {"tests": digests})


def change_of(table: pl.DataFrame) -> dict[str, str]:
    return dict(table.select("problem", "change").iter_rows())


def test_each_problem_stands_in_one_class() -> None:
    old = published({"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "g"}, dropped={"d": "never_solved", "e": "proof"})
    new = published(
        {"id": "a"},
        {"id": "d"},
        {"id": "h"},
        dropped={"b": "too_easy", "c": "near_duplicate", "e": "proof", "a": "duplicate"},
    )
    table = compare(old, new)
    assert table.schema == CHANGES
    assert change_of(table) == {
        **{"a": "kept", "d": "promoted", "h": "added"},
        **{"b": "retired", "c": "dropped", "e": "left_out", "g": "removed"},
    }
    assert sum(count_changes(table).values()) == table.height == 7


def test_contents_differ_and_measurements_do_not_count_as_contents() -> None:
    old = published({"id": "a"}, {"id": "b"}, {"id": "c", "pass_rate": 0.25}, tests={"a": 1, "b": 2})
    new = published(
        {"id": "a", "answer": "2"}, {"id": "b"}, {"id": "c", "policy": "m@2"}, tests={"a": 1, "b": 3, "c": 4}
    )
    table = compare(old, new)
    assert dict(table.select("problem", "differs").iter_rows()) == {"a": ["answer"], "b": ["tests"], "c": ["tests"]}
    assert count_differing(table) == {"tests": 2, "answer": 1}
    assert rate_shift(table) == (3, pytest.approx(0.25 / 3))


def test_a_rewritten_statement_is_one_problem_under_another_id() -> None:
    old = published({"id": "a", "statement": "Pick: what is 2+2? (A) 4"}, {"id": "b", "statement": "What is 3?"})
    new = published(
        {"id": "z", "row": ord("a"), "statement": "What is 2+2?", "raw_statement": "Pick: what is 2+2? (A) 4"},
        {"id": "y", "row": ord("b"), "statement": "Another problem at the place of the other one."},
    )
    table = compare(old, new)
    assert change_of(table) == {"z": "reworded", "y": "added", "b": "removed"}
    assert table.filter(pl.col("problem") == "z")["old_problem"].to_list() == ["a"]
    back = compare(new, old)
    assert change_of(back) == {"a": "reworded", "b": "added", "y": "removed"}
