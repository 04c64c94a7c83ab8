"""Receipts as values: what they hold, their bytes, and where two differ."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from curation.publish.receipts import (
    FILE,
    Figure,
    Needs,
    Receipt,
    column_digests,
    differing_figures,
    page,
    power_of_tests,
    read_receipt,
    share_figure,
)
from curation.records import SourceError

PROOFS = share_figure("planted.proof", "Proofs", 9, 10, "planted", Needs.RUN, {"proof": 8, "unusable": 1, "stayed": 1})
MEASURE = "goldilocks publish DIR --receipt"
ABSENT = Figure("worth.x", "What | it was worth", None, None, None, "nobody asked", Needs.TRAINING, MEASURE)
FIGURES = (ABSENT, PROOFS)
RECEIPT = Receipt("a-set", 2, "2026-11-23", "0.1.0", "answers@4", 7, FIGURES, {"README.md": "00"}, {"id": "11"})


def test_a_receipt_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(RECEIPT.as_json(), encoding="utf-8")
    assert read_receipt(tmp_path) == RECEIPT
    assert replace(RECEIPT, rows=8).digest != RECEIPT.digest
    (tmp_path / FILE).write_text(json.dumps({"schema": "goldilocks-receipt@9"}))
    with pytest.raises(SourceError, match="this version reads goldilocks-receipt@1"):
        read_receipt(tmp_path)


def test_the_page_says_each_figure_once_and_what_is_not_measured() -> None:
    text = page(RECEIPT)
    assert "| Proofs | 0.900 (0.596 to 0.982): proof 8, unusable 1, stayed 1 | 10 | the run's folder |" in text
    assert "| What \\| it was worth | not measured |  | `goldilocks publish DIR --receipt` |" in text
    assert text.index("What Curation Was Worth") < text.index("Planted Defects Found")
    assert "Licences" not in text


def test_differences_are_sentences() -> None:
    other = replace(RECEIPT, figures=(replace(PROOFS, n=11), replace(ABSENT, name="worth.y")))
    assert differing_figures(RECEIPT, RECEIPT, {"planted.proof", "worth.x"}) == []
    assert differing_figures(RECEIPT, other, {"planted.proof", "worth.x", "worth.y"}) == [
        "planted.proof: the receipt states 0.900 (0.596 to 0.982) of 10 [proof 8, unusable 1, stayed 1], "
        "0.900 (0.596 to 0.982) of 11 [proof 8, unusable 1, stayed 1] comes out.",
        "worth.x: the receipt states not measured, nothing comes out.",
        "worth.y: the receipt states nothing, not measured comes out.",
    ]
    reworded = replace(RECEIPT, figures=(ABSENT, replace(PROOFS, how="seen")))
    assert differing_figures(RECEIPT, reworded, {"planted.proof"}) == [
        "planted.proof: the figure is right, but its words in the receipt were changed."
    ]


def test_columns_have_digests_whatever_files_they_lie_in(tmp_path: Path) -> None:
    rows = pl.DataFrame({"id": ["a", "b", "c"], "answer": ["1", None, ""]})
    changed = rows.with_columns(answer=pl.Series(["1", "", ""]))
    parts = {"whole": rows, "one": rows[:1], "two": rows[1:], "changed": changed}
    paths = {name: tmp_path / f"{name}.parquet" for name in parts}
    for name, part in parts.items():
        part.write_parquet(paths[name])
    whole = column_digests([paths["whole"]])
    assert whole == column_digests([paths["one"], paths["two"]])
    _, digests = column_digests([paths["changed"]])
    assert (digests["id"], digests["answer"] != whole[1]["answer"]) == (whole[1]["id"], True)


def test_the_tests_of_a_set_are_counted_by_hand() -> None:
    # test 0 is given; solutions 0 and 1 are right; 5 fails nothing, and its run on test 1 was given up
    fails = {0: set[int](), 1: {2}, 2: {0}, 3: {1}, 4: {1, 2}, 5: set[int]()}
    rows = [
        ("p", solution, solution < 2, test, True, "other" if test in wrong else "same", "ok")
        for solution, wrong in fails.items()
        for test in (0, 1, 2)
    ]
    rows[-2] = ("p", 5, False, 1, False, None, "skipped")
    columns = ["problem", "solution", "right", "test", "valid", "output", "ended"]
    runs = pl.DataFrame(rows, schema=columns, orient="row")
    decided = {"problem": "p", "test": [0, 1, 2], "decision": ["keep", "correct", "keep"], "output": "same"}
    decisions = pl.DataFrame(decided)
    made = pl.DataFrame({"problem": "p", "test": [1, 2]})
    figures = {figure.name: (figure.value, figure.n) for figure in power_of_tests(runs, decisions, made)}
    missed = {"tests.tnr": (0.75, 4), "tests.tnr.left_out": (0.75, 4), "tests.tnr.given": (0.25, 4)}
    assert figures == {"tests.tpr": (0.5, 2), **missed}
    alone = runs.filter(~pl.col("solution").is_in([4]))
    left_out = {figure.name: figure.value for figure in power_of_tests(alone, decisions, made)}
    assert (left_out["tests.tnr"], left_out["tests.tnr.left_out"]) == (0.6667, 0.3333)
