"""Two published sets compared: every problem in one class, contents told apart from measurements."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from curation.publish.set_diff import CHANGES, PublishedTables, count_differing, part_changes, rate_move, rate_shift
from curation.publish.versions import counts

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


def diff_sets(old: PublishedTables, new: PublishedTables) -> pl.DataFrame:
    """Return one `CHANGES` row per problem of either set, in the order of the new one, then those that are gone."""
    return part_changes(placed(old), placed(new)).select(CHANGES.names())


def placed(tables: PublishedTables) -> PublishedTables:
    """Return the tables with the place of each row, ``at``: dropped rows come after the others."""
    behind = tables.data.height + pl.int_range(pl.len())
    return PublishedTables(
        tables.data.with_columns(at=pl.int_range(pl.len())), tables.dropped.with_columns(at=behind), tables.further
    )


def change_of(table: pl.DataFrame) -> dict[str, str]:
    return dict(table.select("problem", "change").iter_rows())


def moves_of(table: pl.DataFrame) -> pl.Series:
    return table.select(move=rate_move())["move"].drop_nulls()


def test_each_problem_stands_in_one_class() -> None:
    old = published({"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "g"}, dropped={"d": "never_solved", "e": "proof"})
    new = published(
        {"id": "a"},
        {"id": "d"},
        {"id": "h"},
        dropped={"b": "too_easy", "c": "near_duplicate", "e": "proof", "a": "duplicate"},
    )
    table = diff_sets(old, new)
    assert table.schema == CHANGES
    assert change_of(table) == {
        **{"a": "kept", "d": "promoted", "h": "added"},
        **{"b": "retired", "c": "dropped", "e": "left_out", "g": "removed"},
    }
    assert sum(counts(table).values()) == table.height == 7


def test_contents_differ_and_measurements_do_not_count_as_contents() -> None:
    old = published({"id": "a"}, {"id": "b"}, {"id": "c", "pass_rate": 0.25}, tests={"a": 1, "b": 2})
    new = published(
        {"id": "a", "answer": "2"}, {"id": "b"}, {"id": "c", "policy": "m@2"}, tests={"a": 1, "b": 3, "c": 4}
    )
    table = diff_sets(old, new)
    assert dict(table.select("problem", "differs").iter_rows()) == {"a": ["answer"], "b": ["tests"], "c": ["tests"]}
    assert count_differing(table) == {"tests": 2, "answer": 1}
    assert rate_shift(moves_of(table)) == (3, pytest.approx(0.25 / 3))


def test_sets_compared_in_parts_are_compared_as_whole() -> None:
    names = [f"p{number}" for number in range(40)]
    old = published(*({"id": name, "row": at, "statement": f"s{at}"} for at, name in enumerate(names)))
    renamed = [f"n{name}" if at % 7 == 0 else name for at, name in enumerate(names)]
    new = published(
        *(
            {"id": name, "row": at, "statement": f"s{at}", "answer": "2" if at % 5 == 0 else "1"}
            for at, name in enumerate(renamed)
            if at % 11
        ),
        dropped={"p11": "too_easy", "q": "proof"},
    )
    whole = diff_sets(old, new)
    assert {"added", "kept", "retired", "removed"} <= set(whole["change"])
    sides = [placed(tables) for tables in (old, new)]
    tables = []
    for part in range(3):
        inside = pl.col("id").hash(0) % 3 == part
        was, now = (
            PublishedTables(side.data.filter(inside), side.dropped.filter(inside), side.further) for side in sides
        )
        tables.append(part_changes(was, now))
    assert pl.concat(tables).sort("gone", "at").select(whole.columns).equals(whole)
