"""Pass@1: mean over problems, interval over problems, failures left out."""

from __future__ import annotations

import math

import pytest

from curation.policies.completions import TokenCompletion
from curation.records import Outcome
from training.evaluation.evaluate import summarise_evaluation
from training.rewards import Reward
from training.rollouts.rollouts import Rollout


def one(outcome: Outcome | None, tokens: int = 2) -> Rollout:
    made = TokenCompletion((1,), (5,) * tokens, (-0.1,) * tokens, (0,) * tokens, "", "stop")
    return Rollout("p", made, Reward(), outcome, "")


def test_by_hand() -> None:
    right, wrong = one(Outcome.CORRECT), one(Outcome.WRONG, tokens=4)
    found = summarise_evaluation([[right, right], [right, wrong], [one(None), wrong]])
    assert found.pass_rate == pytest.approx(0.5)
    reach = 1.96 * 0.5 / math.sqrt(3)  # rates 1, 1/2, 0 have a deviation of 1/2
    assert (found.low, found.high) == pytest.approx((max(0.5 - reach, 0), min(0.5 + reach, 1)))
    assert (found.problems, found.rollouts, found.unjudged) == (3, 6, 0)
    assert found.mean_tokens == pytest.approx((2 * 4 + 4 * 2) / 6)


def test_what_could_not_be_judged_or_was_refused_counts_neither_way() -> None:
    right, wrong, timeout, broken = map(one, (Outcome.CORRECT, Outcome.WRONG, Outcome.TIMEOUT, Outcome.BROKEN))
    for attempts, rate, unjudged in (
        ([[right, timeout], [broken]], 1.0, 2),
        ([[right, wrong], [right, None]], 0.5, 2),
    ):
        found = summarise_evaluation(attempts)
        assert (found.pass_rate, found.problems, found.unjudged) == (rate, 1, unjudged)
    assert math.isnan(summarise_evaluation([[broken]]).pass_rate)
