"""Planted references decide between the posterior and votes: what is planted, what is counted, who decides."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from curation.difficulty.label_trust import (
    PlantedCheck,
    RuleFound,
    accused_by_votes,
    cast_again,
    check_by_planting,
    decided_by_votes,
    drawn_problems,
    fit_labels,
    label_posteriors,
    plant_references,
)
from curation.difficulty.label_votes import ANSWERS, VOTES, VoteParts
from tests.benchmarks.labelled_attempts import plant, simulated, votes_of


def cast(*rows: tuple[str, str, int | None, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=VOTES, orient="row")


def test_a_planted_reference_is_another_answer_and_the_old_one_is_one_of_the_others(tmp_path: Path) -> None:
    votes = cast(*((f"p{n:03}", "m", kind, 3 - kind) for n in range(100) for kind in (0, 1)), ("p000", "m", None, 1))
    whole = VoteParts([(votes, ANSWERS.to_frame())], tmp_path)
    labels = plant_references(whole, whole.ids, seed=4)
    planted, wrong = cast_again(votes, labels, whole.top), set(labels["problem"])
    assert len(wrong) == 20
    untouched = ~pl.col("problem").is_in(list(wrong))
    assert planted.filter(untouched).equals(votes.filter(untouched))
    by_problem = {
        name: dict(part.select("votes", "answer_class").iter_rows()) for (name,), part in planted.group_by("problem")
    }
    swapped = [name for name in wrong if by_problem[name][2] == 0]
    assert all(by_problem[name][3] == 2 for name in wrong)  # what was the reference's answer
    assert 1 <= len(swapped) <= 12
    assert all(by_problem[name][2] == 1 for name in wrong - set(swapped))


def test_a_majority_of_the_voters_accuses() -> None:
    votes = cast(
        ("most", "m", 1, 3), ("most", "m", 0, 2), ("half", "m", 1, 3), ("half", "m", 0, 3), ("few", "m", 1, 2),
        ("split", "m", 1, 3), ("split", "m", 2, 3), ("other", "n", 1, 9),
    )  # fmt: skip
    assert accused_by_votes(votes, ["m"]) == {"most"}
    assert accused_by_votes(votes, ["m", "n"]) == {"most", "other"}


def test_the_better_rule_decides_and_exactly_its_labels_reach_the_threshold() -> None:
    assert PlantedCheck(20, RuleFound(18, 4), RuleFound(17, 4), 400, 0.0).posterior_holds
    worse = PlantedCheck(20, RuleFound(18, 4), RuleFound(19, 2), 400, 0.0)
    assert not worse.posterior_holds
    assert "finds 18 and accuses 4 others, votes find 19 and accuse 2; so votes decide" in worse.sentence
    labels = pl.DataFrame({"problem": ["a", "b", "c"], "wrong_label": [0.1, 0.9, 0.2]})
    decided = decided_by_votes(labels, {"a"}, 0.5)["wrong_label"].to_list()
    assert decided[0] == 0.5
    assert 0.49 < decided[1] < 0.5
    assert decided[2] == 0.2


def test_a_rule_that_accuses_too_many_sound_labels_is_not_trusted() -> None:
    """One policy's majority finds most planted ones and accuses as many sound ones: the posterior accuses nobody."""
    check = PlantedCheck(40, RuleFound(0, 2), RuleFound(30, 24), 800, 0.0)
    assert check.is_trusted(check.by_posterior)
    assert not check.is_trusted(check.by_votes)
    assert check.posterior_holds
    # three in a hundred were wrong before, and votes find three of four: 18 of the 24 are these
    assert not PlantedCheck(40, RuleFound(0, 2), RuleFound(30, 24), 800, 0.03).posterior_holds
    assert not PlantedCheck(40, RuleFound(30, 60), RuleFound(20, 8), 800, 0.0).posterior_holds


ANSWERED = simulated(300, {"a": 2.0, "b": 2.5, "c": 3.0}, 4, 5)
CAST = votes_of(ANSWERED, plant(ANSWERED, 0.05, 1))


def in_parts(folder: Path, count: int) -> VoteParts:
    ids = CAST["problem"].unique().sort()
    folder.mkdir()
    parts = (CAST.filter(pl.col("problem").is_in(ids.gather_every(count, first).implode())) for first in range(count))
    answers = CAST.filter(pl.col("answer_class").is_not_null()).group_by("problem", "answer_class").agg(
        answer=pl.lit("1").first(), policies=pl.col("policy").sort().str.join(", ")
    )  # fmt: skip
    return VoteParts(
        ((part, answers.join(part, on="problem", how="semi").match_to_schema(ANSWERS)) for part in parts), folder
    )


def test_votes_in_files_are_those_in_memory(tmp_path: Path) -> None:
    votes, ids = in_parts(tmp_path / "parts", 7), CAST["problem"].unique().sort()
    assert votes.ids.equals(ids)
    assert votes.top == CAST["answer_class"].max()
    by = ["problem", "policy", "answer_class"]
    assert pl.concat(votes.parts()).sort(by).equals(CAST.sort(by))
    some = ids.gather([250, 3, 4])
    assert votes.of(some).sort(by).equals(CAST.filter(pl.col("problem").is_in(some.implode())).sort(by))
    assert votes.answers_of(some)["problem"].unique().sort().equals(some.sort())
    assert votes.of(pl.Series(["nobody"])).is_empty()


@pytest.mark.slow
def test_labels_are_the_same_to_the_bit_and_so_is_what_planting_finds(tmp_path: Path) -> None:
    votes, whole = in_parts(tmp_path / "parts", 7), in_parts(tmp_path / "whole", 1)
    model, ids = fit_labels(votes.of(drawn_problems(votes.ids, 0))), votes.ids
    expected = label_posteriors(fit_labels(CAST), CAST, ids)
    pieces = [label_posteriors(model, votes.of(part), part) for part in (ids[:111], ids[111:])]
    assert pl.concat(pieces).equals(expected)
    found, told = (check_by_planting(either, ["c"], 0.5) for either in (votes, whole))
    assert found is not None
    assert told is not None
    assert (found.planted, found.by_posterior, found.by_votes) == (told.planted, told.by_posterior, told.by_votes)
    assert found.share == pytest.approx(told.share, abs=1e-12)
