"""The curated set: its columns, and quotas that neither shards nor the order of rows can move."""

from collections import Counter

import polars as pl

from curation.config import Band
from curation.difficulty.pass_rates import decide
from curation.filters.dedup.near import MEMBER
from curation.publish.export import (
    COPIES,
    CURATED,
    curate,
    merged_copies,
    over_quota,
    quotas,
    with_accepted,
    with_copies,
)
from curation.records import DECISION, DROPPED, PASS_RATE, PROBLEM
from tests.curation.tables import check_table, frame


def test_quotas_by_hand() -> None:
    check_table("quotas", quotas)


def leaving_rows(rows: pl.DataFrame, size: int | None, seed: int) -> dict[str, str]:
    return dict(over_quota(rows, size, seed).iter_rows())


def index(*rows: tuple[str, str, str]) -> pl.DataFrame:
    """Kept problems as (id, group, source)."""
    schema = {"id": pl.String, "group": pl.String, "source": pl.String}
    return pl.DataFrame(rows, schema, orient="row").with_columns(weight=pl.lit(1.0))


SINGLES = index(*[(f"{source}{i}", f"{source}{i}", source) for source in "ab" for i in range(10)])


def test_who_leaves_and_why() -> None:
    leaving = leaving_rows(SINGLES.with_columns(weight=pl.when(pl.col("source") == "a").then(3.0).otherwise(1.0)), 8, 0)
    assert Counter(name[0] for name in leaving) == {"a": 4, "b": 8}
    assert leaving_rows(SINGLES, None, 0) == leaving_rows(SINGLES, 20, 0) == {}
    assert set(leaving.values()) == {"a gives 6 of its 10 to a set of 8", "b gives 2 of its 10 to a set of 8"}


def test_the_seed_draws_and_draws_the_same_again() -> None:
    draws = {seed: frozenset(leaving_rows(SINGLES, 10, seed)) for seed in range(5)}
    assert all(len(leaving) == 10 for leaving in draws.values())
    assert len(set(draws.values())) == 5
    smaller, larger = (set(SINGLES["id"]) - set(leaving_rows(SINGLES, size, 0)) for size in (4, 10))
    assert smaller < larger  # a larger set keeps what the smaller one had
    # by hand: of "0|a0" … "0|a9" hashed with BLAKE2b (8 bytes), the five smallest stay
    assert sorted(name for name in draws[0] if name[0] == "a") == ["a1", "a4", "a6", "a8", "a9"]


def test_a_group_of_two_sources_leaves_together_and_in_any_order_the_same() -> None:
    size = 5
    twins = index(*[(f"{source}{i}", f"g{i}", source) for source in "ab" for i in range(6)])
    leaving = leaving_rows(twins, size, 0)
    assert all((f"a{i}" in leaving) == (f"b{i}" in leaving) for i in range(6))
    assert twins.height - len(leaving) == size // 2 * 2
    assert leaving_rows(twins.reverse(), size, 0) == leaving


def decisions(*rows: tuple[str, int, int], policy: str = "weak@1") -> pl.DataFrame:
    """Decisions on (problem, correct, judged)."""
    rates = (
        {"problem": name, "attempts": judged, "judged": judged, "correct": correct, "pass_rate": correct / judged}
        for name, correct, judged in rows
    )
    every = {**dict.fromkeys(PASS_RATE, 0), "top_wrong_answer": None, "policy": policy, "low": 0.125, "high": 0.875}
    return decide(frame(PASS_RATE, *rates, **every), Band(attempts=16), "stage")


def test_the_published_columns() -> None:
    kept = frame(PROBLEM, {"id": "b", "choices": ["1"], "statement": "Find b."}, {"id": "a"}, source="a", row=0)
    last = decisions(("a", 2, 16), ("c", 9, 16), ("b", 4, 16), policy="strong@1")
    assert last.schema == DECISION
    alone = curate(kept, last, None)
    assert alone.schema == CURATED
    assert "choices" not in alone.columns
    assert alone.select("id", "policy", "judged", "correct", "pass_rate", "pass_rate_low").rows() == [
        ("b", "strong@1", 16, 4, 0.25, 0.125),
        ("a", "strong@1", 16, 2, 0.125, 0.125),
    ]
    assert alone.select("first_policy", "first_pass_rate").rows() == [(None, None)] * 2
    both = curate(kept, last, decisions(("b", 1, 16), ("a", 0, 16)))
    assert both.schema == CURATED
    assert both.select("id", "correct", "first_policy", "first_pass_rate").rows() == [
        ("b", 4, "weak@1", 0.0625),
        ("a", 2, "weak@1", 0.0),
    ]


def test_a_row_says_how_its_attempts_decided() -> None:
    kept = frame(PROBLEM, *({"id": name} for name in "abcde"), source="a", row=0)
    evidence = [
        "9 of 16 correct",
        "9 of 9 correct",
        "2 of 5 correct, 1 agree on another answer; foreseen at 0.931",
        None,
        "2 of 6 correct, 1 agree on another answer; foreseen at 0.950 with old@1 16, stated by set 4",
    ]
    last = decisions(("a", 9, 16), ("b", 9, 9), ("c", 2, 5), ("d", 1, 16), ("e", 2, 6)).with_columns(
        attempts=pl.Series([16, 9, 5, 16, 6], dtype=pl.Int32),
        skipped=pl.Series([0, 7, 27, None, 26], dtype=pl.Int32),
        evidence=pl.Series(evidence),
    )
    told = ["all attempts", "certain after 9 of 16", "foreseen at 0.931 after 5 of 32", "all attempts"]
    curated = curate(kept, last, None)
    assert curated["decided_by"].to_list() == [*told, "foreseen at 0.950 after 6 of 32"]
    own = [f"weak@1 {judged}" for judged in (16, 9, 5, 16, 6)]
    assert curated["informed_by"].to_list() == [*own[:4], "weak@1 6, old@1 16, stated by set 4"]


def test_answers_that_votes_took_for_the_present_reference_travel_with_the_row() -> None:
    problems = pl.DataFrame({"id": ["a", "b"], "answer": ["15", "2"]})
    rows = [
        ("a", "15", "15 more cupcakes", 4, "same"),
        ("a", "15", "15 cupcakes", 1, "same"),
        ("a", "15", "15 or so", 2, "different"),
        ("a", "14", "fourteen", 2, "same"),  # of the reference before
    ]
    votes = pl.DataFrame(rows, ("problem", "reference", "answer", "attempts", "decision"), orient="row")
    found = with_accepted(problems, votes)
    assert found["accepted"].to_list() == [["15 cupcakes", "15 more cupcakes"], []]
    assert found["id"].to_list() == ["a", "b"]


def dropped(*rows: tuple[str, str, int, str, str]) -> pl.DataFrame:
    names = ("id", "source", "row", "license", "reason")
    return frame(DROPPED, *(dict(zip(names, row, strict=True)) for row in rows))


KEPT = pl.DataFrame({"id": ["p", "q", "r"], "source": ["a", "b", "b"], "row": [0, 0, 7]})


def test_a_copy_of_a_copy_is_a_copy_of_the_row_that_stays() -> None:
    exact = dropped(("q", "c", 5, "MIT", "duplicate"), ("p", "a", 9, "MIT", "duplicate"))
    near = dropped(("q", "b", 0, "unknown", "near_duplicate"))
    member = frame(MEMBER, {"source": "b", "row": 0, "kept_source": "a", "kept_row": 0})
    found = (("a", 9, "MIT"), ("b", 0, "unknown"), ("c", 5, "MIT"))
    copies = [dict(zip(("source", "row", "license"), one, strict=True)) for one in found]
    assert merged_copies(KEPT, exact, near, member).rows() == [("a", 0, copies)]


def test_rows_without_copies_have_an_empty_list_and_stay_in_order() -> None:
    copies = merged_copies(KEPT, dropped(("r", "c", 1, "MIT", "duplicate")), pl.DataFrame(), pl.DataFrame())
    rows = with_copies(KEPT, copies)
    assert rows["id"].to_list() == ["p", "q", "r"]
    assert rows.schema["also_from"] == COPIES
    assert rows["also_from"].list.len().to_list() == [0, 0, 1]
