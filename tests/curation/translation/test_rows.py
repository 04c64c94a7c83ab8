"""Translations as rows: none that the set has already, with the pass rates of the originals."""

from __future__ import annotations

import polars as pl

from curation.questions.proposals import refused_rows
from curation.records import PROBLEM, DropReason, problem_id
from curation.translation.questions import RESULT
from curation.translation.rows import translated_rows, with_decisions, without_repeated

ORIGINALS = pl.DataFrame(
    [
        {
            "id": name,
            "group": name,
            "domain": "math",
            "statement": text,
            "answer": "3",
            "lang": "en",
            "meta": '{"a": 1}',
        }
        for name, text in (("p", "What is 1 + 2?"), ("q", "Work out 1 + 2."), ("r", "Add 1 and 2."))
    ],
    schema=PROBLEM,
)
GERMAN = ("Was ist 1 + 2?", "Was ist 1 + 2?", "Addiere 1 und 2.")
PROPOSALS = pl.DataFrame(
    [
        {"at": at, "id": name, "target": "de", "tries": 1, "accepted": True, "why": None, "new_statement": text,
         "new_answer": "3", "new_choices": None}
        for at, (name, text) in enumerate(zip("pqr", GERMAN, strict=True))
    ],
    schema={"at": pl.UInt32, "id": pl.String, "target": pl.String, "tries": pl.Int32, "accepted": pl.Boolean,
            "why": pl.String, **RESULT},
)  # fmt: skip


def test_a_text_that_the_set_has_is_not_added_twice() -> None:
    rows, proposals = without_repeated(translated_rows(ORIGINALS, PROPOSALS, "m@1", None), PROPOSALS, {"p", "q", "r"})
    assert rows["translation_of"].to_list() == ["p", "r"]
    assert rows["id"].to_list() == [problem_id(GERMAN[0]), problem_id(GERMAN[2])]
    dropped = refused_rows(ORIGINALS, proposals, "translation", DropReason.UNTRANSLATED)
    assert dropped.select("id", "reason", "evidence").rows() == [
        ("q", "untranslated", "repeated: the set has this text already")
    ]
    rows, _ = without_repeated(rows, proposals, {problem_id(GERMAN[2])})
    assert rows["translation_of"].to_list() == ["p"]


def test_what_a_row_has_of_its_original() -> None:
    row = translated_rows(ORIGINALS, PROPOSALS, "m@1", "r@1").row(0, named=True)
    assert (row["raw_statement"], row["raw_answer"], row["group"], row["lang"]) == ("What is 1 + 2?", None, "p", "de")
    assert row["meta"] == '{"a": 1, "translation": {"of": "p", "tries": 1, "by": "m@1", "read_by": "r@1"}}'


def test_pass_rates_are_copied_unless_they_were_measured() -> None:
    rows = translated_rows(ORIGINALS, PROPOSALS, "m@1", None)[[0, 2]]
    measured = rows.with_columns(pass_rate_of=pl.Series([None, "r"]))
    decisions = pl.DataFrame({"problem": ["p", "q", "r"], "pass_rate": [0.1, 0.2, 0.3]})
    assert with_decisions(decisions, rows).rows()[3:] == [(rows["id"][0], 0.1), (rows["id"][1], 0.3)]
    assert with_decisions(decisions, measured).rows()[3:] == [(rows["id"][1], 0.3)]
