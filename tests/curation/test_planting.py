"""Planted defects: each row carries one, the originals of copies come along, and the same seed plants the same."""

import polars as pl

from curation.planting import FIRST, KINDS, plant_rows
from curation.records import PROBLEM, problem_id
from tests.curation.tables import frame

LONG = (
    "A gardener plants {} rows of 16 tulips in spring, but a hail storm destroys 27 of them. "
    "How many are left there now?"
)


def problems(count: int) -> pl.DataFrame:
    texts = [LONG.format(number) for number in range(20, 20 + count)]
    rows = (
        {"id": problem_id(text), "group": problem_id(text), "statement": text, "answer": str(row), "row": row}
        for row, text in enumerate(texts)
    )
    return frame(PROBLEM, *rows, domain="math", lang="en", source="own", license="MIT", weight=1.0)


BENCH = [f"What is {number} plus {number} divided by 7, rounded to the nearest integer?" for number in range(10)]


def test_each_row_carries_one_defect_at_most_and_copies_come_with_their_originals() -> None:
    own = problems(60)
    sample = plant_rows(own, BENCH, 0, most=4, sound=10)
    assert sample.rows.schema == PROBLEM
    counts = dict(sample.planted.group_by("kind").len().iter_rows())
    assert counts == dict.fromkeys(KINDS, 4)
    assert sample.planted["row"].to_list() == list(range(FIRST, FIRST + 4 * len(KINDS)))
    untouched = sample.rows.filter(pl.col("row") < FIRST)
    assert untouched.height == 10 + 4 * sum(kind.with_original for kind in KINDS.values())
    assert untouched.join(own, on=own.columns[:4], how="semi").height == untouched.height
    carriers = list(sample.copies.values())
    assert len(carriers) == len(set(carriers))
    originals = {KINDS[kind].with_original for kind in sample.planted["kind"] if not KINDS[kind].of_benchmark}
    assert originals == {True, False}
    assert sample.rows.equals(plant_rows(own.reverse(), BENCH, 0, most=4, sound=10).rows)
    assert not sample.rows.equals(plant_rows(own, BENCH, 4, most=4, sound=10).rows)


def test_every_planted_row_differs_from_its_original_in_statement_or_answer() -> None:
    own = problems(60)
    sample = plant_rows(own, BENCH, 0, most=4, sound=0)
    before = {(row["statement"], row["answer"]) for row in own.iter_rows(named=True)}
    planted = sample.rows.join(sample.planted, on=["source", "row"])
    assert planted.filter(kind="missing_answer")["answer"].null_count() == 4
    for row in planted.iter_rows(named=True):
        assert (row["statement"], row["answer"]) not in before, row["kind"]
    figures = planted.filter(kind="missing_figure")["statement"]
    assert all(any(word in text for word in ("figure", "diagram", "![](")) for text in figures)
    benchmarks = planted.filter(pl.col("kind").str.starts_with("contaminated"))
    assert set(benchmarks.filter(kind="contaminated")["statement"]) <= set(BENCH)
