"""Translations solved by who solved the original: the test of the answers, and the way through `translate`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from curation.config import TranslationSettings
from curation.records import ConfigError, PromptRequest
from curation.translation import StoredReplies, Translations, translate
from curation.translation.back_solving import agreement
from tests.curation.translation.saying import Saying
from tests.curation.translation.test_translate import FRENCH, NAME, ROW, line, recorded

Says = Callable[[PromptRequest, int], str | None]


def solver_of(says: Says) -> Saying:
    def boxed(problem: PromptRequest, index: int) -> str | None:
        said = says(problem, index)
        return f"So it is \\boxed{{{said}}}." if said is not None else None

    return Saying("solve@1", boxed)


@pytest.mark.parametrize(
    ("original", "translated", "within", "across", "chance"),
    [
        ([0, 0, 0, 0], [1, 1, 1, 1], 1.0, 0.0, 2 / 70),  # only these four, or the other four, part them so
        ([0, 0, 0, 0], [0, 0, 0, 0], 1.0, 1.0, 1.0),
        ([0, 0], [1, 1], 1.0, 0.0, 2 / 6),
        ([0, None], [None, 0], 0.0, 0.25, 1.0),  # of six partings the two that keep the zeros together have 0 of 4 …
        ([0, 1, 2, 3], [4, 5, 6, 7], 0.0, 0.0, 1.0),  # who never repeats an answer tells nothing
    ],
)
def test_how_likely_so_little_agreement_is(
    original: list[int | None], translated: list[int | None], within: float, across: float, chance: float
) -> None:
    found = agreement(original, translated)
    assert (found.within, found.across, found.attempts) == (within, across, len(original))
    assert found.chance == pytest.approx(chance)


def test_many_attempts_are_parted_by_a_fixed_sample() -> None:
    one = agreement([0] * 16, [0] * 8 + [1] * 8)
    assert one == agreement([0] * 16, [0] * 8 + [1] * 8)
    assert one.chance < 0.01
    with pytest.raises(ValueError, match="give as many of each"):
        agreement([0, 0], [0])


def through(tmp_path: Path, solver: Any, **settings: Any) -> Translations:
    async def run() -> Translations:
        policy = recorded(tmp_path, line(FRENCH))
        async with policy, solver:
            chosen = TranslationSettings(tries=1, **settings)
            return await translate([ROW], {NAME: "fr"}, policy, chosen, solver=solver)

    return asyncio.run(run())


def test_a_translation_that_is_answered_alike_is_kept_and_says_so(tmp_path: Path) -> None:
    solver = solver_of(lambda _, index: "36" if index % 2 else "12")
    (row,) = through(tmp_path, solver, back_solving=4).rows
    record = json.loads(row["meta"])["translation"]["back_solving"]
    assert record == {"attempts": 4, "within": pytest.approx(1 / 3, abs=1e-4), "across": 0.5, "chance": 1.0}
    asked = sorted((problem.id, index) for problem, index in solver.asked)
    assert asked == [(NAME, at) for at in range(4)] + [(f"{NAME}#fr0", at) for at in range(4)]


def test_a_translation_that_is_answered_otherwise_is_refused(tmp_path: Path) -> None:
    solver = solver_of(lambda problem, _: "36" if problem.lang == "en" else "15")
    found = through(tmp_path, solver, back_solving=4)
    assert found.rows == []
    assert found.failed[0].invariants == ("back_solving",)
    assert "36 36 36 36 to the original, 15 15 15 15 to the translation" in found.failed[0].why


def test_who_cannot_solve_the_original_refuses_nothing(tmp_path: Path) -> None:
    silent = solver_of(lambda _problem, _index: None)
    assert through(tmp_path, silent, back_solving=4).counts["translated"] == 1
    guessing = solver_of(lambda problem, index: str(7 * index + (problem.lang == "fr")))
    assert through(tmp_path, guessing, back_solving=6).counts["translated"] == 1


def test_attempts_are_on_disk_and_not_made_again(tmp_path: Path) -> None:
    first = solver_of(lambda _problem, _index: "36")
    through(tmp_path, StoredReplies(first, tmp_path / "attempts.jsonl"), back_solving=4)
    again = solver_of(lambda _problem, _index: "36")
    through(tmp_path, StoredReplies(again, tmp_path / "attempts.jsonl"), back_solving=6)
    assert len(first.asked) == 8
    assert sorted(index for _, index in again.asked) == [4, 4, 5, 5]


def test_it_is_off_by_default_and_needs_a_solver(tmp_path: Path) -> None:
    idle = solver_of(lambda _problem, _index: "36")
    assert through(tmp_path, idle).counts["translated"] == 1
    assert idle.asked == []
    with pytest.raises(ConfigError, match="needs a policy that solves"):
        asyncio.run(
            translate([ROW], {NAME: "fr"}, recorded(tmp_path, line(FRENCH)), TranslationSettings(back_solving=4))
        )
    with pytest.raises(ValidationError, match="give more attempts or a higher level"):
        TranslationSettings(back_solving=3)
