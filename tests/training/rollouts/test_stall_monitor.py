"""Fates of attempts since the last group to train on: counted, told once, and the end of a run that learns nothing."""

from __future__ import annotations

import pytest

from curation.policies.completions import TokenCompletion
from curation.records import Outcome
from training.objectives.credit import filter_group
from training.rewards import Reward
from training.rollouts.rollouts import Rollout
from training.rollouts.stall_monitor import StallMonitor


def rollout(reward: Reward, finish: str = "stop", text: str = "17 + 25 is 42") -> Rollout:
    completion = TokenCompletion((1,), (5, 6, 7), (-0.1,) * 3, (0,) * 3, text, finish)
    outcome = None if reward.format_error else Outcome.CORRECT if reward.correct else Outcome.WRONG
    return Rollout("p1", completion, reward, outcome, "number")


BROKEN = rollout(Reward(format_error="does not start with <think>"))
WRONG, CORRECT = rollout(Reward(format=0.1)), rollout(Reward(format=0.1, correctness=0.9, correct=True))
CUT = rollout(Reward(format_error="does not start with <think>"), "length")
EXCLUDED = rollout(Reward(excluded_by="timeout"))


def monitor(said: list[str], warn_after: int, stop_after: int | None = None) -> StallMonitor:
    return StallMonitor((warn_after, stop_after or 4 * warn_after), said.append)


def finish(watched: StallMonitor, *group: Rollout) -> None:
    watched.record_group(group, filter_group([one.reward for one in group], "reward"))


def test_it_speaks_once_and_then_asks_for_the_end() -> None:
    said: list[str] = []
    watched = monitor(said, 8)
    finish(watched, BROKEN, BROKEN, BROKEN, CUT)
    assert not said
    for _ in range(6):
        finish(watched, BROKEN, BROKEN, BROKEN, CUT)
        assert not watched.is_stalled
    assert len(said) == 1
    finish(watched, BROKEN, BROKEN, BROKEN, CUT)
    assert watched.is_stalled
    assert len(said) == 1
    report = watched.report()
    assert report.startswith("32 attempts without a group to train on.")
    assert "format: does not start with <think> 24, cut off 8; groups: none_correct 8." in report
    assert "Commonest (75 %): format: does not start with <think>: " in report
    assert "chat template" in report
    assert report.endswith('problem p1, 3 tokens: "17 + 25 is 42"')


def test_a_group_to_train_on_begins_anew() -> None:
    said: list[str] = []
    watched = monitor(said, 8)
    for _ in range(20):  # one trainable group in three: it neither speaks nor ends
        finish(watched, BROKEN, BROKEN, BROKEN, BROKEN)
        watched.record_failure("p1", "engine gone")
        finish(watched, CORRECT, WRONG, BROKEN, BROKEN)
        assert watched.attempts == 0
    assert not said


@pytest.mark.parametrize(
    ("group", "commonest"),
    [
        ((CORRECT,) * 4, "Commonest (100 %): correct: the problems are too easy"),
        ((WRONG,) * 4, "Commonest (100 %): wrong: the problems are too hard"),
        ((EXCLUDED,) * 4, "Commonest (100 %): verifier: timeout: the verifier could not judge"),
        ((CUT,) * 4, "Commonest (100 %): cut off: raise `max_tokens`"),
    ],
)
def test_each_commonest_fate_has_its_advice(group: tuple[Rollout, ...], commonest: str) -> None:
    said: list[str] = []
    watched = monitor(said, 4)
    finish(watched, *group)
    assert commonest in said[0]


def test_failed_generations_count_at_once_and_several_ways_to_break_the_format_are_one_kind() -> None:
    said: list[str] = []
    watched = monitor(said, 3, 7)
    for _ in range(3):
        watched.record_failure("p2", "no server answers\x1b[2J")
    assert "generation failed 3; groups: none finished" in said[0]
    assert 'problem p2: "no server answers [2J"' in said[0]
    ways = [rollout(Reward(format_error=f"{count} <think> and 0 </think>")) for count in range(2, 6)]
    finish(watched, *ways)
    assert watched.is_stalled
    assert "Commonest (57 %): format: 2 <think>" in watched.report()  # 4 of 7 broke it, each in its way
