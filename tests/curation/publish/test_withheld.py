"""Withheld texts: nothing of the source is written down, and what is put together again is the text."""

from __future__ import annotations

import json

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from curation.publish.withheld import (
    WITHHELD,
    digest_of,
    is_withheld,
    parts_of,
    restore_texts,
    withhold_texts,
)
from curation.records import PROBLEM

SOURCE = {"statement": "7. What is 2 + 2?  (A) 3 (B) 4", "answer": "B", "choices": ["3", "4"], "meta": '{"level": 5}'}


def rows(*overrides: dict[str, object]) -> pl.DataFrame:
    plain = {**dict.fromkeys(PROBLEM), "source": "web", "row": 3, "id": "p", "license": "unknown", **SOURCE}
    return pl.DataFrame([{**plain, **changed} for changed in overrides], schema=PROBLEM)


def test_a_text_is_withheld_by_its_own_licence_and_by_that_of_a_copy() -> None:
    frame = pl.DataFrame(
        {
            "license": ["MIT", None, "cc-by-nc-4.0", "MIT"],
            "also_from": [[], [], [], [{"license": "MIT"}, {"license": "CC-BY-NC-4.0"}]],
        }
    )
    assert is_withheld(frame, ["CC-BY-NC-4.0"]).to_list() == [False, False, True, True]
    assert is_withheld(frame.drop("also_from"), ["unknown"]).to_list() == [False, True, False, False]


def test_what_was_changed_is_told_by_places_in_the_source_and_comes_back() -> None:
    changed = {"statement": "What is 2 + 2?", "answer": "4", "raw_statement": SOURCE["statement"], "raw_answer": "B"}
    table, source = rows(changed, {"row": 4, "id": "q", "license": "MIT"}), rows({})
    split = withhold_texts("data", table, is_withheld(table, ["unknown"]), source)
    assert split.left_out == 0
    assert split.rows["statement"].to_list() == [None, SOURCE["statement"]]
    assert split.rows["id"].to_list() == ["p", "q"]
    told = {note["column"]: json.loads(note["parts"]) for note in split.withheld.iter_rows(named=True)}
    assert told["statement"] == [["statement", 3, 17]]
    assert told["raw_statement"] == [["statement", 0, len(SOURCE["statement"])]]
    assert all(not isinstance(part, str) for parts in told.values() for part in parts)
    filled, missing = restore_texts("data", split.rows, split.withheld, source)
    assert missing.is_empty()
    assert filled.equals(table)


def test_a_source_that_says_something_else_now_is_named_and_nothing_is_filled_in() -> None:
    table = rows({})
    split = withhold_texts("data", table, is_withheld(table, ["unknown"]), table)
    filled, missing = restore_texts("data", split.rows, split.withheld, rows({"answer": "A"}))
    assert missing["column"].to_list() == ["answer"]
    assert filled["answer"].to_list() == [None]
    filled, missing = restore_texts("data", split.rows, split.withheld, rows({"id": "other"}))
    assert missing.height == split.withheld.height
    assert filled.equals(split.rows)


def test_a_row_in_other_words_than_its_source_leaves() -> None:
    table = rows({"statement": "Combien font deux et deux ?"}, {"row": 4, "id": "q", "license": "MIT"})
    split = withhold_texts("data", table, is_withheld(table, ["unknown"]), rows({}))
    assert (split.left_out, split.rows["id"].to_list()) == (1, ["q"])
    assert split.withheld.is_empty()
    assert split.withheld.schema == WITHHELD


@given(st.text("ab ?", max_size=6), st.text("ab ?", max_size=6), st.text("ab ?", max_size=6))
def test_a_text_is_made_again_of_its_parts(source: str, before: str, after: str) -> None:
    for text in (before + source + after, source[1:-1], before):
        parts = parts_of(text, "statement", {"statement": source})
        made = "".join(part if isinstance(part, str) else source[part[1] : part[2]] for part in parts)
        assert (made, digest_of(made)) == (text, digest_of(text))
