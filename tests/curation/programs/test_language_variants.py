"""Twins: which languages are asked for, and what the rows look like."""

import json

import polars as pl

from curation.config import CodeSettings
from curation.programs.execution_matrix import MEASURED
from curation.programs.language_variants import LANGUAGE, languages_of, make_variants
from curation.prompts.solving import FENCE
from curation.records import DROPPED, PROBLEM, problem_id
from tests.curation.tables import frame

WANTED = pl.DataFrame(
    {"problem": ["p", "p"], "test": [0, 1], "output": ["x", "y"]}, schema_overrides={"test": pl.Int32}
)
BOTH = CodeSettings().languages
LIMITS = pl.DataFrame({"problem": ["p"], "time_limit_s": [1.0]})


def runs(*solutions: tuple[str, str, float]) -> pl.DataFrame:
    """(language, output on test 1, slowest time) per solution; test 0 is always right."""
    rows = [
        ("p", index, True, test, True, given, given == "xy"[test], lang, cpu_s, "ok", None)
        for index, (lang, output, cpu_s) in enumerate(solutions)
        for test, given in ((0, "x"), (1, output))
    ]
    return pl.DataFrame(rows, schema=MEASURED, orient="row")


def languages(*solutions: tuple[str, str, float]) -> list[str]:
    return languages_of(runs(*solutions), WANTED, LIMITS, BOTH)["language"].to_list()


def test_a_language_is_asked_for_if_a_solution_passes_in_time_or_none_is_known_and_the_limit_allows_it() -> None:
    assert languages(("python", "y", 2.5), ("cpp", "y", 0.1)) == ["python", "cpp"]
    assert languages(("python", "z", 0.1), ("cpp", "y", 0.1)) == ["cpp"], "all fail"
    assert languages(("python", "y", 3.5), ("cpp", "y", 0.1)) == ["cpp"], "all are too slow"
    assert languages(("cpp", "y", 0.1)) == ["python", "cpp"]
    assert languages(("cpp", "y", 0.2)) == ["cpp"]
    assert languages(("python", "y", 0.5)) == ["python", "cpp"]
    assert languages(("python", "y", 1.5)) == ["python"]


def test_twins_share_their_group_and_name_their_language() -> None:
    rows = frame(PROBLEM, {"id": "p", "group": "p"}, {"id": "q", "group": "q"}, domain="code", statement="Add.", row=0)
    kept, dropped = make_variants(rows, languages_of(runs(("cpp", "y", 0.1)), WANTED, LIMITS, BOTH))
    assert (kept.schema, dropped.schema) == (PROBLEM, DROPPED)
    assert kept["group"].to_list() == ["p", "p"]
    assert kept["statement"][1] == "Add.\n\nWrite the program in C++20."
    assert kept["raw_statement"].to_list() == ["Add.", "Add."]
    assert kept["id"].to_list() == [problem_id(text, None, "code") for text in kept["statement"]]
    assert [json.loads(meta)[LANGUAGE] for meta in kept["meta"]] == ["python", "cpp"]
    assert LANGUAGE == FENCE
    assert dropped.select("id", "reason").rows() == [("q", "no_solution")]
    only_cpp = languages_of(runs(("cpp", "y", 0.1)), WANTED, LIMITS, ["cpp"])
    assert [table["id"].to_list() for table in make_variants(rows, only_cpp, {"p"})] == [[], ["p", "q"]]
