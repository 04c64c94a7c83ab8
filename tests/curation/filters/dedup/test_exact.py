"""Duplicates: the first in source order stays, references that conflict take all copies with them."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.filters.dedup.exact import ExactDuplicates, drop_exact_duplicates, exact_duplicates
from curation.records import DROPPED, PROBLEM
from tests.curation.tables import frame


def found_in(rows: pl.DataFrame) -> ExactDuplicates:
    """Find repeated ids in rows that come in parts of three."""
    return exact_duplicates(lambda: rows.iter_slices(3))


def problems(*rows: tuple[str, str, int, str]) -> pl.DataFrame:
    """Problems as (id, source, row, answer)."""
    return frame(PROBLEM, *(dict(zip(("id", "source", "row", "answer"), row, strict=True)) for row in rows))


ROWS = problems(
    ("p", "b", 4, "1/2"),
    ("q", "b", 5, "3"),
    ("p", "b", 9, "0.5"),
    ("r", "b", 11, "7"),
    ("s", "a", 0, "8"),
    ("p", "a", 1, "1/2"),
    ("r", "a", 2, "7"),
    ("s", "a", 3, "9"),
)


def test_the_first_stays_and_a_conflict_takes_all() -> None:
    before = ROWS.clone()
    found = found_in(ROWS)
    kept, dropped = drop_exact_duplicates(ROWS, found, {"s": "references: 8 | 9"})
    assert ROWS.equals(before)
    assert kept.schema == PROBLEM
    assert dropped.schema == DROPPED
    assert kept.select("id", "source", "row").rows() == [("p", "b", 4), ("q", "b", 5), ("r", "b", 11)]
    assert dropped.select("id", "source", "row", "stage", "reason", "evidence").rows() == [
        ("p", "b", 9, "exact_dedup", "duplicate", "same as row 4 of b"),
        ("s", "a", 0, "exact_dedup", "conflicting_answers", "references: 8 | 9"),
        ("p", "a", 1, "exact_dedup", "duplicate", "same as row 4 of b"),
        ("r", "a", 2, "exact_dedup", "duplicate", "same as row 11 of b"),
        ("s", "a", 3, "exact_dedup", "conflicting_answers", "references: 8 | 9"),
    ]
    assert dropped.select(PROBLEM.names()).equals(ROWS[[2, 4, 5, 6, 7]])


def test_references_that_the_verifier_calls_equal_are_no_conflict() -> None:
    kept, dropped = drop_exact_duplicates(ROWS, found_in(ROWS), {})
    assert kept.filter(id="s").select("source", "row").rows() == [("a", 0)]
    assert dropped["reason"].to_list() == ["duplicate"] * 4


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("pqr"), st.sampled_from("12")), max_size=12), st.integers(1, 12))
def test_how_rows_lie_in_shards_does_not_matter(drawn: list[tuple[str, str]], size: int) -> None:
    rows = problems(*[(name, "a", row, answer) for row, (name, answer) in enumerate(drawn)])
    found = found_in(rows)
    conflicts = dict.fromkeys(found.references, "they differ")
    whole = drop_exact_duplicates(rows, found, conflicts)
    shards = [drop_exact_duplicates(part, found, conflicts) for part in [rows.clear(), *rows.iter_slices(size)]]
    for side in (0, 1):
        assert pl.concat([shard[side] for shard in shards]).equals(whole[side])
    kept, dropped = whole
    assert kept.height + dropped.height == len(drawn)
    assert kept["row"].is_sorted()
    assert dropped["row"].is_sorted()
    answers = {name: {answer for other, answer in drawn if other == name} for name, _ in drawn}
    assert sorted(kept["id"]) == sorted(name for name, several in answers.items() if len(several) == 1)
