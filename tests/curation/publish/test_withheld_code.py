"""Given tests and checkers that a code set may not carry: taken out, and put back by their digest."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from curation.publish.withheld import (
    JUDGING,
    TESTS,
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


def problem(**values: Any) -> pl.DataFrame:
    return pl.DataFrame([{name: values.get(name) for name in PROBLEM}], schema=PROBLEM)


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
    restored, missing = restore_beside(TESTS, split.rows, split.withheld, {"py": "orig"}, GIVEN)
    assert missing.is_empty()
    assert restored.equals(PUBLISHED.filter(~pl.col("index").is_in([3, 4])))
    changed = GIVEN.with_columns(pl.col("input").str.replace("5 5", "5 6"))
    restored, missing = restore_beside(TESTS, split.rows, split.withheld, {"py": "orig"}, changed)
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
    restored, missing = restore_beside(JUDGING, split.rows, split.withheld, {"py": "orig"}, given)
    assert missing.is_empty()
    assert restored.equals(judging)


def test_a_variants_statement_is_its_originals_and_its_language_stays() -> None:
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
