"""The numbers of a run: shares of time and of groups, batches by hand."""

from __future__ import annotations

import pytest

from curation.policies.completions import TokenCompletion
from curation.records import Outcome
from training.evaluation.metrics import SampledGroupStats
from training.objectives.base import Statistic
from training.optimisation.trainer import StepResult
from training.rewards import Reward
from training.rollouts.batches import batch_metrics, policy_metrics
from training.rollouts.rollout_scheduler import RolloutGroup, RolloutRequest
from training.rollouts.rollouts import Rollout


def rollout(
    correct: bool, tokens: int, versions: tuple[int, ...] | None = None, excluded: str | None = None
) -> Rollout:
    made = TokenCompletion((1, 2), (5,) * tokens, (-0.5,) * tokens, versions or (3,) * tokens, "text", "stop")
    reward = Reward(excluded_by=excluded) if excluded else Reward(0.1, 0.9 * correct, correct=correct)
    return Rollout("p", made, reward, Outcome.CORRECT if correct else Outcome.WRONG, "number")


def group(number: int, *rollouts: Rollout) -> RolloutGroup[Rollout]:
    pairs = tuple((RolloutRequest(number, index, "p", 0), one) for index, one in enumerate(rollouts))
    return RolloutGroup(number, "p", 0, pairs, ())


GROUPS = (
    group(0, rollout(True, 2), rollout(False, 4, (2, 2, 3, 3))),
    group(1, rollout(True, 3), rollout(False, 3)),
)


def test_batch_numbers_by_hand() -> None:
    numbers = batch_metrics(GROUPS, version=4)
    assert numbers["reward/total"] == pytest.approx(0.55)
    assert numbers["batch/pass_rate"] == 0.5
    assert numbers["length/trained_mean"] == 3
    assert numbers["age/token_mean"] == pytest.approx((10 * 1 + 2 * 2) / 12)
    assert numbers["age/token_max"] == 2


def test_what_was_sampled_counts_groups_that_are_dropped_too() -> None:
    count, right, wrong = SampledGroupStats(), Reward(0.1, 0.9, correct=True), Reward(0.1)
    count.add([right, right], [2, 2], ["stop", "stop"], is_dropped=True)
    count.add([wrong, right, Reward(excluded_by="timeout")], [4, 4, 4], ["stop", "length", "stop"], is_dropped=False)
    numbers = count.numbers()
    assert (numbers["sampled/all"], numbers["sampled/some"], numbers["sampled/none"]) == (0.5, 0.5, 0)
    assert (numbers["sampled/dropped"], numbers["length/cut_share"]) == (0.5, 0.2)
    assert numbers["sampled/pass_rate"] == pytest.approx(0.75)
    assert numbers["sampled/excluded"] == 1
    assert numbers["length/sampled_mean"] == pytest.approx(16 / 5)
    assert count.tokens == 16
    assert SampledGroupStats().numbers() == {}


def test_several_optimiser_steps_are_weighted_by_their_tokens() -> None:
    first = {"mean": Statistic("mean", 10.0, 10.0), "largest": Statistic("max", 3.0)}
    second = {"mean": Statistic("mean", 60.0, 30.0), "largest": Statistic("max", 2.0)}
    steps = [
        StepResult(0.5, 2.0, 1e-3, first, 1, 20, 10, 0.5),
        StepResult(-0.25, 1.0, 2e-3, second, 1, 40, 30, 0.5),
    ]
    numbers = policy_metrics(steps)
    assert numbers["policy/loss"] == 0.25
    assert numbers["policy/mean"] == pytest.approx(1.75)
    assert numbers["policy/largest"] == 3
    assert numbers["policy/gradient_norm"] == 2
    assert numbers["policy/learning_rate"] == 2e-3
