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


def finish(watched: StallMonitor, *group: Rollout) -> None:
    watched.record_group(group, filter_group([one.reward for one in group], "reward"))


@pytest.mark.parametrize(
    ("group", "commonest"),
    [
        (CORRECT, "Commonest (100 %): correct: the problems are too easy"),
        (WRONG, "Commonest (100 %): wrong: the problems are too hard"),
        (EXCLUDED, "Commonest (100 %): verifier: timeout: the verifier could not judge"),
        (CUT, "Commonest (100 %): cut off: raise `max_tokens`"),
        (BROKEN, "Commonest (100 %): format: does not start with <think>: "),
    ],
)
def test_it_speaks_once_with_the_advice_of_the_commonest_fate_and_then_asks_for_the_end(
    group: Rollout, commonest: str
) -> None:
    said: list[str] = []
    watched = StallMonitor((8, 32), said.append)
    for _ in range(8):
        assert not watched.is_stalled
        finish(watched, *[group] * 4)
    (text,) = said
    assert commonest in text
    assert watched.is_stalled
    finish(watched, CORRECT, WRONG, CORRECT, WRONG)  # a group to train on begins anew
    assert watched.report().startswith("no attempt")


def test_failed_generations_count_at_once_and_several_ways_to_break_the_format_are_one_kind() -> None:
    said: list[str] = []
    watched = StallMonitor((3, 7), said.append)
    for _ in range(3):
        watched.record_failure("p2", "no server answers\x1b[2J")
    assert "generation failed 3; groups: none finished" in said[0]
    assert 'problem p2: "no server answers [2J"' in said[0]
    ways = [rollout(Reward(format_error=f"{count} <think> and 0 </think>")) for count in range(2, 6)]
    finish(watched, *ways)
    assert watched.is_stalled
    assert "Commonest (57 %): format: 2 <think>" in watched.report()  # 4 of 7 broke it, each in its way
