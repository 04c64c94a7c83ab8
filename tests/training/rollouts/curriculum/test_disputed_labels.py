"""Labels that training speaks against: which rollouts do, and what the curriculum does then."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from training.config import RewardSettings
from training.objectives.grpo import GrpoSettings
from training.rollouts.curriculum.controller import CurriculumController
from training.rollouts.curriculum.disputed_labels import AnswerCounts, count_answers, find_dispute, rises
from training.rollouts.curriculum.pools import Pool
from training.rollouts.curriculum.settings import CurriculumSettings


def groups(rivals: Sequence[int], correct: Sequence[int], judged: int = 8) -> list[AnswerCounts]:
    return [
        AnswerCounts(step, judged, right, {"7": votes} if votes else {})
        for step, (votes, right) in enumerate(zip(rivals, correct, strict=True), start=1)
    ]


@pytest.mark.parametrize(
    ("rivals", "correct", "is_disputed"),
    [
        ((1, 2, 2, 6, 7, 7), (0, 0, 1, 0, 0, 0), True),  # it rises and the reference does not
        ((8, 8, 8, 8, 8, 8), (0, 0, 0, 0, 0, 0), True),  # it led from the beginning, and no reward changes that
        ((7, 7, 6, 3, 2, 1), (1, 1, 2, 5, 6, 7), False),  # the reference rises, as a right one does
        ((6, 6, 6, 5, 5, 5), (0, 0, 0, 3, 3, 3), False),  # it leads still, and the reference is coming
        ((2, 2, 2, 2, 2, 2), (0, 0, 0, 0, 0, 0), False),  # a hard problem: no answer has half of the rollouts
        ((6, 7), (0, 0), False),  # too few to say
        ((0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0), False),  # nobody answers
    ],
)
def test_when_a_label_is_disputed(rivals: Sequence[int], correct: Sequence[int], is_disputed: bool) -> None:
    dispute = find_dispute(groups(rivals, correct))
    assert (dispute is not None) == is_disputed
    if dispute is not None:
        assert dispute.rival == "7"
        assert f"to {sum(rivals[3:])} of 24 rollouts" in dispute.evidence
        assert "(steps 1 to 3 and 4 to 6)" in dispute.evidence


def test_answers_are_counted_as_they_are_written() -> None:
    assert count_answers(["1,200", "1200", r"\$1200", " 1200.", "x + 1", "x+1", None, ""]) == {"1200": 4, "x+1": 2}
    assert count_answers(["(1,2)", "12"]) == {"(1,2)": 1, "12": 1}


def test_a_share_that_rises() -> None:
    assert rises(2, 24, 20, 24) > 0.999
    assert rises(20, 24, 2, 24) < 0.001
    assert rises(5, 20, 5, 20) == pytest.approx(0.5)


def controller(disputes: bool = True) -> CurriculumController:
    settings = CurriculumSettings(disputes=disputes)
    return CurriculumController(["p0", "p1", "p2"], settings, RewardSettings(), GrpoSettings(), seed=3)


def train(made: CurriculumController, steps: range) -> list[str]:
    """Six steps in which p0's rivals rise; return the reasons of its changes."""
    reasons = []
    for step in steps:
        made.record_group("p0", step, 0, 8, ["91"] * min(8, 2 * step) + [None] * max(0, 8 - 2 * step))
        made.record_group("p1", step, 4, 8, ["5", "6", "7", "8"])
        moves, _ = made.after_step(step, 0.5, 50.0)
        reasons += [move.reason for move in moves if move.new is Pool.DISPUTED]
    return reasons


def test_a_disputed_problem_leaves_and_is_accounted_for() -> None:
    made = controller()
    (reason,) = train(made, range(1, 9))
    assert reason.startswith("in training 91 rose from")
    assert made.pool_sizes() == {"active": 2, "deferred": 0, "retired": 0, "disputed": 1}
    assert "p0" not in {made.draw_problem() for _ in range(200)}
    assert made.disputes["p0"].rival == "91"
    assert train(made, range(9, 12)) == []


def test_a_restored_state_disputes_what_an_undisturbed_run_does() -> None:
    whole, begun = controller(), controller()
    reasons = train(whole, range(1, 9))
    first = train(begun, range(1, 4))
    resumed = controller()
    resumed.restore(json.loads(json.dumps(begun.state())))
    assert first + train(resumed, range(4, 9)) == reasons
    assert resumed.state() == whole.state()


def test_without_the_setting_nothing_is_disputed_and_no_answer_is_kept() -> None:
    made = controller(False)
    assert train(made, range(1, 9)) == []
    assert made.state()["answers"] == {}
    assert "disputed" not in made.pool_sizes()
