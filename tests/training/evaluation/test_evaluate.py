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


def test_what_the_verifier_failed_on_counts_neither_way() -> None:
    found = summarise_evaluation([[one(Outcome.CORRECT), one(Outcome.TIMEOUT)], [one(Outcome.BROKEN)]])
    assert found.pass_rate == 1
    assert (found.problems, found.unjudged) == (1, 2)


def test_nothing_judged_is_no_number() -> None:
    assert math.isnan(summarise_evaluation([[one(Outcome.BROKEN)]]).pass_rate)


def test_a_problem_that_was_refused_is_left_out_and_counted() -> None:
    found = summarise_evaluation([[one(Outcome.CORRECT), one(Outcome.WRONG)], [one(Outcome.CORRECT), None]])
    assert (found.pass_rate, found.problems, found.rollouts, found.unjudged) == (0.5, 1, 2, 2)
