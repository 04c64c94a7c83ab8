"""Two versions of a curated set: every problem stands in one class, and the changelog adds up."""

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
from tests.curation.tables import frame


def version(policy: str, **reasons: str | None) -> pl.DataFrame:
    """DECISION rows: problem = reason, None for kept."""
    rows = ({"problem": name, "keep": reason is None, "reason": reason} for name, reason in reasons.items())
    measured = frame(DECISION, *rows, stage="stage2", evidence="", policy=policy, judged=16, pass_rate=0.25)
    return measured.with_row_index("at")


OLD = version("m@1", a=None, b=None, c="never_solved", d=None, e="too_easy", f=None, g=None, i="never_solved")
SUSPECTED = "suspected_wrong_label"
NEW = version(
    "m@2", h=None, a=None, b="too_easy", c=None, d=SUSPECTED, e="too_easy", f="never_solved", i=SUSPECTED, j="too_easy"
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


TEXTS = dict.fromkeys(("id", "source", "statement", "answer", "raw_statement", "policy", "informed_by"), pl.String())
ROW = pl.Schema({**TEXTS, "row": pl.Int64(), "judged": pl.Int32(), "pass_rate": pl.Float64()})


def published(
    *rows: dict[str, Any], dropped: dict[str, str] | None = None, tests: dict[str, int] | None = None
) -> PublishedTables:
    named = ({"row": ord(row["id"]), "statement": row["id"], "policy": "m@1", "pass_rate": 0.5, **row} for row in rows)
    filled = frame(ROW, *({"source": "s", "judged": 16, "answer": "1", **row} for row in named))
    left = pl.DataFrame([*(dropped or {}).items()], {"id": pl.String, "reason": pl.String}, orient="row")
    digests = pl.DataFrame([*(tests or {}).items()], {"problem": pl.String, "digest": pl.UInt64}, orient="row")
    return PublishedTables(filled, left, {"tests": digests})


def test_each_problem_stands_in_one_class() -> None:
    old = published({"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "g"}, dropped={"d": "never_solved", "e": "proof"})
    dropped = {"b": "too_easy", "c": "near_duplicate", "e": "proof", "a": "duplicate"}
    new = published({"id": "a"}, {"id": "d"}, {"id": "h"}, dropped=dropped)
    table = compare(old, new)
    assert table.schema == DIFFERENCE
    assert dict(table.select("problem", "change").iter_rows()) == {
        **{"a": "kept", "d": "promoted", "h": "added"},
        **{"b": "retired", "c": "dropped", "e": "left_out", "g": "removed"},
    }
    assert table.height == 7


def test_contents_differ_and_measurements_do_not_count_as_contents() -> None:
    old = published({"id": "a"}, {"id": "b"}, {"id": "c", "pass_rate": 0.25}, tests={"a": 1, "b": 2})
    rows = ({"id": "a", "answer": "2"}, {"id": "b"}, {"id": "c", "policy": "m@2", "informed_by": "m@2 9"})
    table = compare(old, published(*rows, tests={"a": 1, "b": 3, "c": 4}))
    assert dict(table.select("problem", "differs").iter_rows()) == {"a": ["answer"], "b": ["tests"], "c": ["tests"]}
    assert count_differing(table) == {"tests": 2, "answer": 1}
    assert rate_shift(table) == (3, pytest.approx(0.25 / 3))
