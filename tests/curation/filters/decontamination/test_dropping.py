"""What a run does with hits: rows with any leave, and name the best hit of each method."""

from __future__ import annotations

import polars as pl
import pytest
from pydantic import ValidationError

from curation.config import DecontaminationSettings, Source
from curation.filters.decontamination.overlap import HIT, OVERLAP, TEMPLATE, count_templates, drop_contaminated
from curation.records import DROPPED, PROBLEM, DropReason


def problems(*statements: str | None) -> pl.DataFrame:
    rows = [
        dict.fromkeys(PROBLEM) | {"id": f"p{n}", "statement": text, "source": "s", "row": 10 + n}
        for n, text in enumerate(statements)
    ]
    return pl.DataFrame(rows, schema=PROBLEM)


def hits(*lines: tuple[int, str, float, str, int], kind: str = OVERLAP) -> pl.DataFrame:
    rows = [
        {"row": row, "method": method, "score": score, "benchmark": name, "benchmark_row": place}
        for row, method, score, name, place in lines
    ]
    frame = pl.DataFrame(
        rows, schema={name: HIT[name] for name in ("row", "method", "score", "benchmark", "benchmark_row")}
    )
    agree = {"agreement": 1.0 if kind == OVERLAP else 0.0, "formal": False, "wording": 1.0, "kind": kind}
    return frame.with_columns(**{name: pl.lit(value) for name, value in agree.items()}).match_to_schema(
        HIT, missing_columns="insert"
    )


def test_rows_with_hits_leave_and_the_others_stay_in_order() -> None:
    frame = problems("a", None, "c", "d")
    found = hits((0, "ngram", 1.0, "exam", 4), (0, "words", 0.8123, "exam", 4), (0, "words", 0.6, "quiz", 1))
    kept, dropped = drop_contaminated(frame, found)
    assert (kept.schema, dropped.schema) == (PROBLEM, DROPPED)
    assert kept["id"].to_list() == ["p1", "p2", "p3"]
    ((name, reason, evidence),) = dropped.select("id", "reason", "evidence").iter_rows()
    assert (name, reason) == ("p0", DropReason.CONTAMINATED)
    assert evidence == "ngram 1.0 with row 4 of exam; words 0.812 with row 4 of exam"


def test_templates_stay_unless_they_are_to_leave() -> None:
    frame = problems("a", "b")
    found = pl.concat([hits((0, "words", 0.9, "exam", 4), kind=TEMPLATE), hits((1, "words", 0.8, "exam", 5))])
    assert count_templates(found) == 1
    assert count_templates(pl.concat([found, hits((0, "words", 0.8, "exam", 6))])) == 0  # it overlaps too
    assert drop_contaminated(frame, found)[1]["id"].to_list() == ["p1"]
    dropped = drop_contaminated(frame, found, with_templates=True)[1]
    assert dropped["evidence"].to_list() == ["template, words 0.9 with row 4 of exam", "words 0.8 with row 5 of exam"]


def test_two_benchmarks_of_one_name_are_refused() -> None:
    one = Source(name="exam", kind="jsonl", path="a.jsonl")
    with pytest.raises(ValidationError, match="two benchmarks are named exam"):
        DecontaminationSettings(against=(one, one))
