"""Withheld texts: nothing of the source is written down, and what is put together again is the text."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from curation.publish.withheld import (
    JUDGING,
    TESTS,
    WITHHELD,
    is_withheld,
    restore_beside,
    restore_texts,
    sources_of_variants,
    with_own_meta,
    withhold_judging,
    withhold_tests,
    withhold_texts,
)
from curation.records import JUDGING as JUDGING_SCHEMA
from curation.records import PROBLEM, TEST

SOURCE = {"statement": "7. What is 2 + 2?  (A) 3 (B) 4", "answer": "B", "choices": ["3", "4"], "meta": '{"level": 5}'}
KEPT = {"row": 4, "id": "q", "license": "MIT"}


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
    table, source = rows(changed, KEPT), rows({})
    split = withhold_texts("data", table, is_withheld(table, ["unknown"]), source)
    assert split.left_out == 0
    assert split.rows["statement"].to_list() == [None, SOURCE["statement"]]
    told = {note["column"]: (note["base"], note["begin"], note["end"]) for note in split.withheld.to_dicts()}
    assert told["statement"] == ("statement", 3, 17)
    assert told["raw_statement"] == ("statement", 0, len(str(SOURCE["statement"])))
    assert set(split.withheld["before"]) == set(split.withheld["after"]) == {""}
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


def test_a_row_whose_statement_or_answer_is_not_its_sources_leaves_and_is_counted() -> None:
    source = rows({"answer": "12 345 apples"})
    for changed in ({"statement": "Combien font deux et deux ?"}, {"answer": "12,345 apples"}):
        table = rows({"answer": "12 345 apples", **changed}, KEPT)
        split = withhold_texts("data", table, is_withheld(table, ["unknown"]), source)
        assert (split.left_out, split.rows["id"].to_list()) == (1, ["q"]), changed
        assert split.withheld.equals(WITHHELD.to_frame())
    lost = rows({"answer": "12 345 apples", "solution": "in our words"})  # a row is of use without it
    split = withhold_texts("data", lost, is_withheld(lost, ["unknown"]), source)
    assert (split.left_out, "solution" in split.withheld["column"]) == (0, False)


HIDDEN = pl.DataFrame({"source": ["s"], "row": [3], "id": ["py"], "group": ["orig"]})
GIVEN = pl.DataFrame(
    [
        ("orig", 0, "1 2\n", "3\n", "public"),
        ("orig", 1, "5 5\n", "11\n", "private"),
        ("orig", 2, "7 8\n", "1 5\n", "private"),
    ],
    schema=TEST,
    orient="row",
)
PUBLISHED = pl.DataFrame(
    [
        ("py", 0, "1 2", "3", "public"),
        ("py", 1, "5 5\n", "10\n", "private"),  # the solutions say 10: ours
        ("py", 2, "9 9\n", "18\n", "mutation"),
        ("py", 3, "7 8\n", "1  5\n", "private"),  # the source's words in another form: neither
        ("py", 4, "4 4\n", "8\n", "private"),  # nowhere in the source
        ("free", 0, "1 2\n", "3\n", "public"),
    ],
    schema=TEST,
    orient="row",
)


def test_given_tests_leave_and_come_back_and_what_is_ours_stays() -> None:
    split = withhold_tests(PUBLISHED, HIDDEN, GIVEN)
    assert split.rows.select("problem", "index", "input", "output").rows() == [
        ("py", 0, None, None),
        ("py", 1, None, "10\n"),
        ("py", 2, "9 9\n", "18\n"),
        ("free", 0, "1 2\n", "3\n"),
    ]
    assert split.left_out == 2
    assert split.withheld["column"].to_list() == ["input 0", "output 0", "input 1"]
    assert "1 2" not in split.withheld.write_ndjson()
    restored, missing = restore_beside(TESTS, split.rows, split.withheld, HIDDEN, GIVEN)
    assert missing.is_empty()
    assert restored.equals(PUBLISHED.filter(~pl.col("index").is_in([3, 4])))
    changed = GIVEN.with_columns(pl.col("input").str.replace("5 5", "5 6"))
    restored, missing = restore_beside(TESTS, split.rows, split.withheld, HIDDEN, changed)
    assert missing["column"].to_list() == ["input 1"]
    assert restored.filter(problem="py", index=1)["input"].to_list() == [None]


def test_a_checker_of_the_source_leaves_and_one_that_is_ours_stays() -> None:
    empty = dict.fromkeys(JUDGING_SCHEMA)
    given = pl.DataFrame([{**empty, "problem": "orig", "checker": "int main() {}"}], schema=JUDGING_SCHEMA)
    lines = [
        {**empty, "problem": "py", "checker": "int main() {}", "validator": "made here", "time_limit_s": 2.0},
        {**empty, "problem": "free", "checker": "int main() {}"},
    ]
    judging = pl.DataFrame(lines, schema=JUDGING_SCHEMA)
    split = withhold_judging(judging, HIDDEN, given)
    assert split.rows["checker"].to_list() == [None, "int main() {}"]
    assert split.rows["validator"].to_list() == ["made here", None]
    restored, missing = restore_beside(JUDGING, split.rows, split.withheld, HIDDEN, given)
    assert missing.is_empty()
    assert restored.equals(judging)


def test_a_variants_statement_is_its_originals_and_its_language_stays() -> None:
    def problem(**values: Any) -> pl.DataFrame:
        return pl.DataFrame([{name: values.get(name) for name in PROBLEM}], schema=PROBLEM)

    text = "Add the two numbers that stand on the only line of the input, and print their sum."
    original = problem(id="orig", group="orig", statement=text, source="s", row=3, meta='{"name": "sum"}')
    meta = json.dumps({"name": "sum", "language": "python", "solved_in_it": True})
    asked = f"{text}\n\nWrite the program in Python 3."
    row = problem(id="py", group="orig", statement=asked, raw_statement=text, source="s", row=3, meta=meta)
    sources = sources_of_variants(row, original)
    assert sources.select("id", "statement", "meta").rows() == [("py", text, meta)]
    split = withhold_texts("data", row, pl.Series([True]), sources)
    public = with_own_meta(split.rows, row)
    assert public.select("statement", "raw_statement").rows() == [(None, None)]
    assert json.loads(public["meta"][0]) == {"language": "python", "solved_in_it": True}
    assert text[:30] not in split.withheld.write_ndjson()
    restored, missing = restore_texts("data", public, split.withheld, sources_of_variants(public, original))
    assert missing.is_empty()
    assert restored.equals(row)
