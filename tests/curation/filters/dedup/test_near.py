"""Near duplicates: the same words and the same numbers; templates, signs and translations stay apart."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.filters.dedup import sketches
from curation.filters.dedup.near import (
    MEMBER,
    cluster_members,
    drop_near_duplicates,
    near_duplicates,
    reference_pairs,
    similar_pairs,
    source_ranks,
)
from curation.filters.dedup.sketches import ShingledRows, jaccard, shingle
from curation.filters.dedup.tokens import shared_passages, tokenize, without_passages
from curation.records import DROPPED, PROBLEM, DropReason
from tests.curation.tables import check_table, frame

EGGS = (
    "Janet's ducks lay 16 eggs per day. She eats three for breakfast every morning and bakes muffins for her friends "
    "every day with four. She sells the remainder at the farmers' market daily for $2 per fresh duck egg. How much in "
    "dollars does she make every day at the farmers' market?"
)
ROBE = "A robe takes 2 bolts of blue fiber and half that much white fiber. How many bolts in total does it take?"


def problems(*rows: tuple[str, int, str | None, str | None]) -> pl.DataFrame:
    """Problems as (source, row, statement, answer)."""
    names = ("source", "row", "statement", "answer")
    return frame(PROBLEM, *({"id": f"{row[0]}{row[1]}", **dict(zip(names, row, strict=True))} for row in rows))


def near(one: str, other: str) -> bool:
    found = near_duplicates(problems(("a", 0, one, "1"), ("a", 1, other, "1")), ["a"])
    return found.height == 1


def test_a_translation_is_no_near_duplicate() -> None:
    formula = r" $\sum_{k=1}^{\infty}\frac{(-1)^{k-1}}{k}\sum_{n=0}^{\infty}\frac{1}{k2^n+1}$."
    rows = problems(("a", 0, "Evaluate" + formula, "1"), ("a", 1, "Avalie" + formula, "1"))
    assert near_duplicates(rows, ["a"]).height == 1
    assert near_duplicates(rows.with_columns(lang=pl.Series(["en", "pt"])), ["a"]).height == 0


ROWS = problems(
    ("z", 0, EGGS.upper(), "18"),
    ("b", 7, EGGS, "18"),
    ("b", 8, EGGS.replace("Janet", "Maria"), "20"),
    ("b", 9, ROBE, "3"),
    ("a", 3, EGGS.replace("muffins", "cakes"), "18.0"),
    ("a", 4, EGGS.replace("16", "17"), "20"),
    ("a", 5, None, "1"),
    ("a", 6, None, "1"),
)


def keys(members: pl.DataFrame) -> list[tuple[str, int, str, int]]:
    return members.select("source", "row", "kept_source", "kept_row").rows()


def test_the_first_source_stays() -> None:
    members = near_duplicates(ROWS, ["b", "a"])
    assert members.schema == MEMBER
    assert keys(members) == [("b", 8, "b", 7), ("a", 3, "b", 7), ("z", 0, "b", 7)]
    assert members["similarity"][2] == 1.0
    assert keys(near_duplicates(ROWS, ["z", "a"])) == [("a", 3, "z", 0), ("b", 7, "z", 0), ("b", 8, "z", 0)]


def test_other_references_are_disputed() -> None:
    members = near_duplicates(ROWS, ["b", "a"])
    assert reference_pairs(members) == [("18", "18.0"), ("18", "20")]
    kept, dropped = drop_near_duplicates(ROWS, members, {("18", "18.0"): True, ("18", "20"): False})
    assert (kept.schema, dropped.schema) == (PROBLEM, DROPPED)
    assert kept["id"].to_list() == ["b7", "b9", "a4", "a5", "a6"]
    assert dropped.select("id", "reason").rows() == [
        ("z0", DropReason.NEAR_DUPLICATE),
        ("a3", DropReason.NEAR_DUPLICATE),
        ("b8", DropReason.CONFLICTING_ANSWERS),
    ]
    assert dropped["evidence"][0] == "1.0 like row 7 of b"
    assert dropped["evidence"][2].endswith("like row 7 of b; references: 18 | 20")


def test_a_pair_without_a_verdict_is_disputed_and_a_missing_reference_is_not() -> None:
    blank = ROWS.with_columns(answer=pl.lit(None, pl.String))
    for rows, disputed in ((ROWS, ["b8", "a3"]), (blank, [])):
        _, dropped = drop_near_duplicates(rows, near_duplicates(rows, ["b", "a"]), {})
        assert dropped.filter(reason=DropReason.CONFLICTING_ANSWERS)["id"].to_list() == disputed


class Shards:
    """Shards in memory; sketching one of them fails."""

    def __init__(self, shards: list[pl.DataFrame], broken: int | None = None) -> None:
        self.shards, self.broken = shards, broken
        self.sketched: list[int] = []

    def __len__(self) -> int:
        return len(self.shards)

    def read(self, index: int, columns: Sequence[str]) -> pl.DataFrame:
        if "lang" in columns:
            if index == self.broken:
                raise OSError("killed")
            self.sketched.append(index)
        return self.shards[index].select(columns)


def test_shards_on_disk_are_one_frame(tmp_path: Path) -> None:
    rows = ROWS[[5, 2, 7, 0, 3, 6, 1, 4]]
    shards = Shards([rows.clear(), *rows.iter_slices(3), rows.clear()])  # nothing was kept of the first and the last
    ranks = source_ranks(shards, ["b", "a"], ["z0"])
    pairs = similar_pairs(shards, ranks, tmp_path, 0.5)
    for threshold in (0.5, 0.95):
        members = cluster_members(shards, ranks, pairs, threshold)
        whole = near_duplicates(ROWS.with_columns(verified=pl.col("id") == "z0"), ["b", "a"], threshold=threshold)
        assert members.equals(whole)
        assert set(members["kept_id"]) == {"z0"}  # a verified reference stays before all others


def test_a_killed_search_goes_on_behind_the_last_sketch(tmp_path: Path) -> None:
    parts = [ROWS[:3], ROWS[3:5], ROWS[5:]]
    ranks = source_ranks(Shards(parts), ["b", "a"], [])
    with pytest.raises(OSError, match="killed"):
        similar_pairs(Shards(parts, broken=2), ranks, tmp_path, 0.75)
    (tmp_path / "00001.starts.npy").unlink()  # the kill came before the last file of the second sketch
    again = Shards(parts)
    pairs = similar_pairs(again, ranks, tmp_path, 0.75)
    assert cluster_members(again, ranks, pairs, 0.75).equals(near_duplicates(ROWS, ["b", "a"]))
    assert again.sketched == [1, 2]
    assert not list(tmp_path.glob("candidates-*"))


@pytest.mark.parametrize("rows", [1, 5])
def test_keys_that_are_sorted_range_after_range_propose_the_same_pairs(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = Shards([ROWS[:4], ROWS[4:]])
    ranks = source_ranks(parts, ["b", "a"], [])
    whole = similar_pairs(parts, ranks, tmp_path, 0.5)
    monkeypatch.setattr(sketches, "PART_ROWS", rows)
    assert whole.height
    assert similar_pairs(parts, ranks, tmp_path, 0.5).equals(whole)


def test_typography_and_a_word_make_no_other_problem_and_a_number_or_a_telling_word_does() -> None:
    check_table("near duplicates", near)


def shingled(texts: list[str]) -> ShingledRows:
    return shingle(tokenize(pl.Series(texts)), len(texts))


def tokens(text: str) -> list[str]:
    return tokenize(pl.Series([text]))["token"].to_list()


TEXTS = st.lists(st.lists(st.sampled_from("ab12+ "), max_size=12).map(" ".join), min_size=1, max_size=8)


@given(TEXTS)
@settings(max_examples=12, deadline=None)
def test_jaccard_is_that_of_the_sets(texts: list[str]) -> None:
    rows = shingled(texts)
    sets = [set(itertools.pairwise(["", *tokens(text), ""])) if tokens(text) else set() for text in texts]
    one, other = np.triu_indices(len(texts), 0)
    expected = [len(sets[i] & sets[j]) / max(1, len(sets[i] | sets[j])) for i, j in zip(one, other, strict=True)]
    assert jaccard(rows, one, other).tolist() == pytest.approx(expected)


def test_what_most_rows_of_a_source_share_is_taken_out_and_a_row_that_is_little_else_keeps_it() -> None:
    wrapper = "Think about the task step by step and put the result in a box at the end: "
    problems = ["how many sides has a cube?", "which number of legs do five dogs have?", "yes?", "what colour is snow?"]
    lines = tokenize(pl.Series([wrapper + text for text in problems]))
    left = without_passages(lines, shared_passages(lines, pl.Series(["a"] * 4)))
    texts = [" ".join(left.filter(pl.col("row") == row)["token"]) for row in range(4)]
    assert texts[:2] == ["how many sides has a cube", "which number of legs do 5 dogs have"]
    assert texts[2].startswith("think about")
    apart = shared_passages(lines, pl.Series(["a", "b", "c", "d"]))
    assert without_passages(lines, apart).equals(lines)


def test_tokens_without_a_numbering_in_front() -> None:
    check_table("tokens", lambda text: " ".join(tokens(text)))
    check_table("same tokens", lambda one, other: tokens(one) == tokens(other))
