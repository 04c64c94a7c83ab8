"""Planted references decide between the posterior and votes: what is planted, what is counted, who decides."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from curation.difficulty.label_trust import (
    PlantedCheck,
    RuleFound,
    accused_by_votes,
    cast_again,
    decided_by_votes,
    plant_references,
)
from curation.difficulty.label_votes import ANSWERS, VOTES, VoteParts


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
