"""Votes in files: the same labels wherever the parts begin."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from curation.difficulty.label_trust import check_by_planting, drawn_problems, fit_labels, label_posteriors
from curation.difficulty.label_votes import ANSWERS, VoteParts
from tests.benchmarks.labelled_attempts import plant, simulated, votes_of

ANSWERED = simulated(300, {"a": 2.0, "b": 2.5, "c": 3.0}, 4, 5)
VOTES = votes_of(ANSWERED, plant(ANSWERED, 0.05, 1))


def in_parts(folder: Path, count: int) -> VoteParts:
    ids = VOTES["problem"].unique().sort()
    folder.mkdir()
    parts = (VOTES.filter(pl.col("problem").is_in(ids.gather_every(count, first).implode())) for first in range(count))
    answers = VOTES.filter(pl.col("answer_class").is_not_null()).group_by("problem", "answer_class").agg(
        answer=pl.lit("1").first(), policies=pl.col("policy").sort().str.join(", ")
    )  # fmt: skip
    return VoteParts(
        ((part, answers.join(part, on="problem", how="semi").match_to_schema(ANSWERS)) for part in parts), folder
    )


def test_votes_in_files_are_those_in_memory(tmp_path: Path) -> None:
    votes, ids = in_parts(tmp_path / "parts", 7), VOTES["problem"].unique().sort()
    assert votes.ids.equals(ids)
    assert votes.top == VOTES["answer_class"].max()
    by = ["problem", "policy", "answer_class"]
    assert pl.concat(votes.parts()).sort(by).equals(VOTES.sort(by))
    some = ids.gather([250, 3, 4])
    assert votes.of(some).sort(by).equals(VOTES.filter(pl.col("problem").is_in(some.implode())).sort(by))
    assert votes.answers_of(some)["problem"].unique().sort().equals(some.sort())
    assert votes.of(pl.Series(["nobody"])).is_empty()


@pytest.mark.slow
def test_labels_are_the_same_to_the_bit_and_so_is_what_planting_finds(tmp_path: Path) -> None:
    votes, whole = in_parts(tmp_path / "parts", 7), in_parts(tmp_path / "whole", 1)
    model, ids = fit_labels(votes.of(drawn_problems(votes.ids, 0))), votes.ids
    expected = label_posteriors(fit_labels(VOTES), VOTES, ids)
    pieces = [label_posteriors(model, votes.of(part), part) for part in (ids[:111], ids[111:])]
    assert pl.concat(pieces).equals(expected)
    found, told = (check_by_planting(either, ["c"], 0.5) for either in (votes, whole))
    assert found is not None
    assert told is not None
    assert (found.planted, found.by_posterior, found.by_votes) == (told.planted, told.by_posterior, told.by_votes)
    assert found.share == pytest.approx(told.share, abs=1e-12)
