"""A clause that moved with its names and numbers is told from two things that changed places."""

from __future__ import annotations

import itertools

import pytest

from curation.translation.clauses import clause_moved
from curation.translation.equivalence import check_equivalence

SHEEP = "How many sheep do Anna, Ben and Carla have together if Carla has 20 sheep?"


def test_no_exchange_of_two_is_a_moved_clause() -> None:
    things = ["A", 5, "B", 3, "C"]
    for i, j in itertools.combinations(range(len(things)), 2):
        exchanged = list(things)
        exchanged[i], exchanged[j] = exchanged[j], exchanged[i]
        assert not clause_moved(things, exchanged)


def test_runs_that_changed_places_are() -> None:
    things = ["P", "A", 5, "B", 3]
    for cut in (2, 3, 4):
        assert clause_moved(things, ["P", *things[cut:], *things[1:cut]])
    assert not clause_moved(things, things)
    assert not clause_moved(things, things[:-1])


@pytest.mark.parametrize(
    ("translated", "violations"),
    [
        ("Si Carla a 20 moutons, combien de moutons Anna, Ben et Carla ont-ils ensemble ?", set()),
        ("Si Anna a 20 moutons, combien de moutons Carla, Ben et Carla ont-ils ensemble ?", {"entities"}),
    ],
)
def test_a_condition_may_come_first(translated: str, violations: set[str]) -> None:
    assert {found.invariant for found in check_equivalence(SHEEP, translated, "en", "fr")} == violations


def test_a_factor_is_told_from_a_count() -> None:
    original = "Bob has 5 fewer than 3 times as many games as Tom."
    assert check_equivalence(original, "鲍勃的游戏比汤姆的 3 倍少 5 个。", "en", "zh") == []
    wrong = check_equivalence(original, "鲍勃的游戏比汤姆的 5 倍少 3 个。", "en", "zh")
    assert "order" in {found.invariant for found in wrong}
