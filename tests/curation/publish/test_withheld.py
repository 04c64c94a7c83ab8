"""Withheld texts: nothing of the source is written down, and what is restored is the text."""

import json
from typing import Any

import polars as pl

from curation.config import StatementSettings
from curation.publish.withheld import is_withheld, restore_texts, source_texts, withhold_texts
from curation.records import JUDGING, PROBLEM, TEST
from tests.curation.tables import frame

TEXT = "What is the sum of all positive integers that divide 12?"
WORKED = "1 + 2 + 3 + 4 + 6 + 12"
SOURCE = {"statement": f"7. {TEXT}", "answer": "28 apples", "meta": '{"level": 5}', "solution": WORKED}
KEPT = {"row": 4, "id": "q", "license": "MIT"}


def rows(*overrides: dict[str, object]) -> pl.DataFrame:
    about = {"source": "web", "row": 3, "id": "p", "license": "unknown", "lang": "en"}
    return frame(PROBLEM, *({**about, **SOURCE, **changed} for changed in overrides))


def texts(*overrides: dict[str, object]) -> pl.DataFrame:
    return source_texts(rows(*overrides or ({},)), StatementSettings(), [])


def test_a_text_is_withheld_by_its_own_licence_and_by_that_of_a_copy() -> None:
    copies = [{"license": "MIT"}, {"license": "CC-BY-NC-4.0"}]
    licences = {"license": ["MIT", None, "cc-by-nc-4.0", "MIT"], "also_from": [[], [], [], copies]}
    table = pl.DataFrame(licences)
    assert is_withheld(table, ["CC-BY-NC-4.0"]).to_list() == [False, False, True, True]
    assert is_withheld(table.drop("also_from"), ["unknown"]).to_list() == [False, True, False, False]


def test_a_cleaned_text_comes_back_and_a_changed_source_is_named() -> None:
    table = rows({"statement": TEXT, "raw_statement": SOURCE["statement"]}, KEPT)
    left, noted = withhold_texts("data", table, is_withheld(table, ["unknown"]), texts())
    assert left["statement"].to_list() == [None, SOURCE["statement"]]
    assert "positive" not in noted.write_ndjson()
    filled, missing = restore_texts("data", left, noted, texts())
    assert missing.is_empty()
    assert filled.equals(table)
    filled, missing = restore_texts("data", left, noted, texts({"answer": "27 apples"}))
    assert missing["column"].to_list() == ["answer"]
    assert filled["answer"].to_list() == [None, "28 apples"]


def test_a_row_whose_statement_or_answer_is_not_its_sources_leaves_and_is_counted() -> None:
    for changed in ({"statement": "Combien font deux et deux ?"}, {"answer": "28"}):
        table = rows(changed, KEPT)
        left, noted = withhold_texts("data", table, is_withheld(table, ["unknown"]), texts())
        assert left["id"].to_list() == ["q"], changed
        assert noted.is_empty()
    lost = rows({"solution": "in our words"})  # a row is of use without it
    left, noted = withhold_texts("data", lost, is_withheld(lost, ["unknown"]), texts())
    assert "solution" not in noted["column"]
    assert left["solution"].to_list() == [None]


PROGRAM = {"source": "s", "row": 3, "id": "orig", "group": "orig", "statement": "Add two numbers.", "meta": None}


def program_texts(**tables: Any) -> pl.DataFrame:
    return source_texts(rows({"answer": None, "solution": None, **PROGRAM}), None, list(tables.values()))


def test_given_tests_leave_and_come_back_and_what_is_ours_stays() -> None:
    def table(name: str, *tests: tuple[str, str, str]) -> pl.DataFrame:
        return pl.DataFrame([(name, at, *test) for at, test in enumerate(tests)], schema=TEST, orient="row")

    given = table("orig", ("1 2\n", "3\n", "public"), ("5 5\n", "11\n", "private"), ("7 8\n", "1 5\n", "private"))
    published = table(
        "py",
        ("1 2", "3", "public"),
        ("5 5\n", "10\n", "private"),  # the solutions say 10: ours
        ("9 9\n", "18\n", "mutation"),
        ("7 8\n", "1  5\n", "private"),  # the source's words in another form: neither
        ("4 4\n", "8\n", "private"),  # nowhere in the source
    )
    own = published.rename({"problem": "id"}).with_columns(source=pl.lit("s"), row=pl.lit(3, pl.Int64))
    left, noted = withhold_texts("tests", own, own["origin"] != "mutation", program_texts(tests=given))
    assert left.select("index", "input", "output").rows() == [(0, None, None), (1, None, "10\n"), (2, "9 9\n", "18\n")]
    assert "1 2" not in noted.write_ndjson()
    public = left.drop("source", "row")
    restored, missing = restore_texts("tests", public, noted, program_texts(tests=given))
    assert missing.is_empty()
    assert restored.equals(own.drop("source", "row").head(3))
    changed = given.with_columns(pl.col("input").str.replace("5 5", "5 6"))
    restored, missing = restore_texts("tests", public, noted, program_texts(tests=changed))
    assert missing.select("index", "column").rows() == [(1, "input")]


def test_a_checker_of_the_source_leaves_and_one_that_is_ours_stays() -> None:
    given = frame(JUDGING, {"problem": "orig", "checker": "int main() {}"})
    line = {"problem": "py", "checker": "int main() {}", "validator": "made here", "time_limit_s": 2.0}
    own = frame(JUDGING, line).rename({"problem": "id"}).with_columns(source=pl.lit("s"), row=pl.lit(3, pl.Int64))
    left, noted = withhold_texts("judging", own, pl.Series([True]), program_texts(judging=given))
    assert left.select("checker", "validator").rows() == [(None, "made here")]
    restored, missing = restore_texts("judging", left, noted, program_texts(judging=given))
    assert missing.is_empty()
    assert restored.equals(own)


def test_a_variants_statement_and_its_meta_are_its_originals() -> None:
    meta = json.dumps({"language": "python", "solved_in_it": True})
    asked = f"{PROGRAM['statement']}\n\nWrite the program in Python 3."
    row = rows({**PROGRAM, "id": "py", "statement": asked, "meta": meta, "answer": None, "solution": None})
    left, noted = withhold_texts("data", row, pl.Series([True]), program_texts())
    assert left.select("statement", "meta").rows() == [(None, None)]
    assert restore_texts("data", left, noted, program_texts())[0].equals(row)
