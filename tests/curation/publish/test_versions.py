"""Two versions of a curated set: every problem stands in one class, and the changelog adds up."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from curation.publish.versions import (
    CHANGES,
    DIFFERENCE,
    PublishedTables,
    changelog,
    changes,
    compare,
    count_differing,
    counts,
    rate_shift,
)
from curation.records import DECISION


def version(policy: str, **reasons: str | None) -> pl.DataFrame:
    """DECISION rows: problem = reason, None for kept."""
    rows = [
        {
            "problem": problem,
            "stage": "stage2",
            "keep": reason is None,
            "reason": reason,
            "evidence": "",
            "policy": policy,
            "judged": 16,
            "pass_rate": 0.25,
        }
        for problem, reason in reasons.items()
    ]
    return pl.DataFrame([{**dict.fromkeys(DECISION), **row} for row in rows], schema=DECISION).with_row_index("at")


OLD = version("m@1", a=None, b=None, c="never_solved", d=None, e="too_easy", f=None, g=None, i="never_solved")
NEW = version(
    "m@2",
    h=None,
    a=None,
    b="too_easy",
    c=None,
    d="suspected_wrong_label",
    e="too_easy",
    f="never_solved",
    i="suspected_wrong_label",
    j="too_easy",
)


def test_every_problem_of_either_version_stands_in_one_class() -> None:
    table = changes(OLD, NEW)
    assert table.drop("gone", "at").schema == CHANGES
    assert table["problem"].to_list() == [*NEW["problem"], "g"]
    assert dict(table.select("problem", "change").iter_rows()) == {
        **{"a": "kept", "b": "retired", "c": "promoted", "d": "newly_suspected", "e": "left_out"},
        **{"f": "deferred", "g": "removed", "h": "added", "i": "newly_suspected", "j": "left_out"},
    }
    assert sum(counts(table).values()) == table.height
    assert set(changes(OLD, OLD)["change"]) == {"kept", "left_out"}


def test_changelog_adds_up() -> None:
    table = changes(OLD, NEW)
    text = changelog(2, "2026-01-31", "m@2", counts(table), table)
    assert text.startswith("## Version 2 (2026-01-31)\n\nJudged by m@2: 3 problems.\n")
    assert "- retired: 1\n" in text
    assert "- unchanged: 1 kept, 2 left out\n" in text
    assert "- `b`: 0.25 of 16 (kept) → 0.25 of 16 (too_easy)\n" in text
    assert "- `h`: not there → 0.25 of 16 (kept)\n" in text
    many = version("m@2", **{f"p{i}": None for i in range(9)})
    table = changes(OLD.clear(), many)
    assert "- and 4 more\n" in changelog(1, "2026-01-31", "m@2", counts(table), table)


ROW = {
    **{"id": pl.String(), "source": pl.String(), "row": pl.Int64(), "statement": pl.String(), "answer": pl.String()},
    **{"raw_statement": pl.String(), "policy": pl.String(), "judged": pl.Int32(), "pass_rate": pl.Float64()},
    "informed_by": pl.String(),
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
    assert table.schema == DIFFERENCE
    assert change_of(table) == {
        **{"a": "kept", "d": "promoted", "h": "added"},
        **{"b": "retired", "c": "dropped", "e": "left_out", "g": "removed"},
    }
    assert table.height == 7


def test_contents_differ_and_measurements_do_not_count_as_contents() -> None:
    old = published({"id": "a"}, {"id": "b"}, {"id": "c", "pass_rate": 0.25}, tests={"a": 1, "b": 2})
    new = published(
        {"id": "a", "answer": "2"},
        {"id": "b"},
        {"id": "c", "policy": "m@2", "informed_by": "m@2 9"},
        tests={"a": 1, "b": 3, "c": 4},
    )
    table = compare(old, new)
    assert dict(table.select("problem", "differs").iter_rows()) == {"a": ["answer"], "b": ["tests"], "c": ["tests"]}
    assert count_differing(table) == {"tests": 2, "answer": 1}
    assert rate_shift(table) == (3, pytest.approx(0.25 / 3))
