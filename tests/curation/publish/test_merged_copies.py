"""Where merged copies stood: exact ones, near ones, and exact copies of a near one."""

from __future__ import annotations

import polars as pl

from curation.filters.dedup.near import MEMBER
from curation.publish.export import COPIES, merged_copies, with_copies
from curation.records import DROPPED


def dropped(*rows: tuple[str, str, int, str, str]) -> pl.DataFrame:
    names = ("id", "source", "row", "license", "reason")
    return pl.DataFrame(
        [{**dict.fromkeys(DROPPED), **dict(zip(names, row, strict=True))} for row in rows], schema=DROPPED
    )


def member(source: str, row: int, kept_source: str, kept_row: int) -> pl.DataFrame:
    about = {"source": source, "row": row, "kept_source": kept_source, "kept_row": kept_row}
    return pl.DataFrame([{**dict.fromkeys(MEMBER), **about}], schema=MEMBER)


KEPT = pl.DataFrame({"id": ["p", "q", "r"], "source": ["a", "b", "b"], "row": [0, 0, 7]})


def test_a_copy_of_a_copy_is_a_copy_of_the_row_that_stays() -> None:
    exact = dropped(("q", "c", 5, "MIT", "duplicate"), ("p", "a", 9, "MIT", "duplicate"))
    near = dropped(("q", "b", 0, "unknown", "near_duplicate"))
    copies = merged_copies(KEPT, exact, near, member("b", 0, "a", 0))
    assert copies.rows() == [
        ("a", 0, [
            {"source": "a", "row": 9, "license": "MIT"},
            {"source": "b", "row": 0, "license": "unknown"},
            {"source": "c", "row": 5, "license": "MIT"},
        ]),
    ]  # fmt: skip


def test_rows_without_copies_have_an_empty_list_and_stay_in_order() -> None:
    copies = merged_copies(KEPT, dropped(("r", "c", 1, "MIT", "duplicate")), pl.DataFrame(), pl.DataFrame())
    rows = with_copies(KEPT, copies)
    assert rows["id"].to_list() == ["p", "q", "r"]
    assert rows.schema["also_from"] == COPIES
    assert rows["also_from"].list.len().to_list() == [0, 0, 1]
