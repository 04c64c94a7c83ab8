"""What a run does with hits: rows with any leave, and name the best hit of each method."""

from __future__ import annotations

import polars as pl
import pytest
from pydantic import ValidationError

from curation.config import Benchmark, DecontaminationSettings
from curation.filters.decontamination import HIT, OverlapSettings, drop_contaminated, find_contamination, format_hits
from curation.records import DROPPED, PROBLEM, DropReason

BENCHMARK = "A choir of 54 singers stands on stage in rows of 9, and each row needs 2 microphones. How many are needed?"


def problems(*statements: str | None) -> pl.DataFrame:
    rows = [
        dict.fromkeys(PROBLEM) | {"id": f"p{n}", "statement": text, "source": "s", "row": 10 + n}
        for n, text in enumerate(statements)
    ]
    return pl.DataFrame(rows, schema=PROBLEM)


def hits(*lines: tuple[int, str, float, str, int]) -> pl.DataFrame:
    return pl.DataFrame(list(lines), schema=HIT, orient="row")


def test_rows_with_hits_leave_and_the_others_stay_in_order() -> None:
    frame = problems("a", None, "c", "d")
    found = hits((0, "ngram", 1.0, "exam", 4), (0, "minhash", 0.8123, "exam", 4), (0, "minhash", 0.6, "quiz", 1))
    kept, dropped = drop_contaminated(frame, found)
    assert (kept.schema, dropped.schema) == (PROBLEM, DROPPED)
    assert kept["id"].to_list() == ["p1", "p2", "p3"]
    ((name, reason, evidence),) = dropped.select("id", "reason", "evidence").iter_rows()
    assert (name, reason) == ("p0", DropReason.CONTAMINATED)
    assert evidence == "ngram 1.0 with row 4 of exam; minhash 0.812 with row 4 of exam"


def test_without_hits_everything_stays() -> None:
    frame = problems("a", "b")
    kept, dropped = drop_contaminated(frame, hits())
    assert kept.equals(frame)
    assert dropped.is_empty()
    assert format_hits(frame, hits()).is_empty()


def test_hits_are_kept_by_the_name_of_the_problem() -> None:
    found = format_hits(problems("a", "b", "c"), hits((2, "ngram", 1.0, "exam", 4)))
    assert found.select("id", "source", "row", "benchmark", "benchmark_row").rows() == [("p2", "s", 12, "exam", 4)]


def test_other_figures_are_overlap_and_an_unrelated_problem_is_none() -> None:
    other = BENCHMARK.replace("54", "72").replace("9", "8")
    frame = problems(BENCHMARK.upper(), other, "How many prime numbers lie between 20 and 60?")
    settings = DecontaminationSettings()
    overlap = OverlapSettings(settings.methods, settings.ngram, settings.whole, settings.similarity, settings.cosine)
    benchmarks = pl.DataFrame({"benchmark": ["exam"], "row": [0], "statement": [BENCHMARK]})
    kept, dropped = drop_contaminated(frame, find_contamination(frame, benchmarks, overlap))
    assert (kept["id"].to_list(), dropped["id"].to_list()) == (["p2"], ["p0", "p1"])


def test_two_benchmarks_of_one_name_are_refused() -> None:
    one = Benchmark(name="exam", kind="jsonl", path="a.jsonl")
    with pytest.raises(ValidationError, match="two benchmarks are named exam"):
        DecontaminationSettings(against=(one, one))
