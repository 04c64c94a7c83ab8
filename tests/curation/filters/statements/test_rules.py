"""The format rules on 325 rows in seven languages: each leaves for its reason, and look-alikes stay."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from curation.config import StatementSettings
from curation.filters.statements.filtering import classify
from curation.filters.statements.rules import RULES
from curation.records import PROBLEM, DropReason

ROWS = Path(__file__).parent / "rows.jsonl"
"""`about`, `lang`, `statement`, `answer`, and the `reason` for which the row is dropped; null: it is kept."""


def test_each_row_leaves_for_its_reason_or_stays() -> None:
    names = ("about", "lang", "statement", "answer", "reason")
    rows = pl.read_ndjson(ROWS, schema=dict.fromkeys(names, pl.String))
    found = classify(rows.select("lang", "statement", "answer"))["reason"]
    assert rows.with_columns(found=found).filter(pl.col("found").ne_missing(pl.col("reason"))).to_dicts() == []


def test_every_rule_has_a_name_of_its_own_and_can_be_switched_off() -> None:
    names = [rule.name for rule in RULES]
    assert len(names) == len(set(names))
    row = pl.DataFrame({"statement": ["Prove that 2 is prime."], "answer": ["4"]})
    settings = StatementSettings(disabled=("proof", "missing_answer"))
    assert classify(row)["rule"].to_list() == ["proof"]
    assert classify(row, settings)["rule"].to_list() == [None]


def test_languages_that_the_recipe_does_not_take() -> None:
    row = pl.DataFrame({"statement": ["Combien font $2 + 2$ ?"] * 2, "answer": ["4"] * 2, "lang": ["fr", None]})
    reasons = classify(row, StatementSettings(languages=("en", "zh")))["reason"].to_list()
    assert reasons == [DropReason.WRONG_LANGUAGE, None]


def test_classify_gives_one_line_per_row_in_order() -> None:
    rows = pl.DataFrame(
        {"id": [7, 8], "statement": ["Prove that $2$ is prime.", "What is $2+2$?\\\\"], "answer": [None, "4"]}
    )
    lines = classify(rows)
    assert lines.columns == ["id", "keep", "reason", "evidence", "statement", "answer", "rule"]
    assert lines.rows() == [
        ("7", False, "proof", "Prove that", "Prove that $2$ is prime.", None, "proof"),
        ("8", True, None, None, "What is $2+2$?", "4", None),
    ]
    assert classify(rows.drop("id", "answer"))["id"].to_list() == ["0", "1"]
    assert classify(pl.DataFrame(schema=PROBLEM)).is_empty()
