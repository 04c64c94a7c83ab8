"""Two versions of a curated set: every problem stands in one class, and the changelog adds up."""

import polars as pl

from curation.publish.versions import CHANGES, changelog, changes, counts
from curation.records import DECISION


def version(policy, **reasons):
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


def test_every_problem_of_either_version_stands_in_one_class():
    table = changes(OLD, NEW)
    assert table.drop("gone", "at").schema == CHANGES
    assert table["problem"].to_list() == [*NEW["problem"], "g"]
    assert dict(table.select("problem", "change").iter_rows()) == {
        **{"a": "kept", "b": "retired", "c": "promoted", "d": "newly_wrong_labelled", "e": "left_out"},
        **{"f": "deferred", "g": "removed", "h": "added", "i": "newly_wrong_labelled", "j": "left_out"},
    }
    assert sum(counts(table).values()) == table.height
    assert set(changes(OLD, OLD)["change"]) == {"kept", "left_out"}


def test_changelog_adds_up():
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
