"""The forecast of a decision against sums over all that could follow, and against simulated problems."""

from __future__ import annotations

from math import exp, lgamma

import pytest

from curation.config import Band
from curation.difficulty.early_stopping import OutcomeCounts, Prior, ProblemPrior, StoppingRule
from curation.difficulty.planning import plan_stage
from curation.records import Outcome


def beta_binomial(hits: int, trials: int, a: float, b: float) -> float:
    choose = lgamma(trials + 1) - lgamma(hits + 1) - lgamma(trials - hits + 1)
    return exp(choose + lgamma(a + hits) + lgamma(b + trials - hits) - lgamma(a + b + trials)) * exp(
        lgamma(a + b) - lgamma(a) - lgamma(b)
    )


def enumerated(rule: StoppingRule, now: OutcomeCounts) -> dict[str | None, float]:
    """Each decision's probability, by all numbers of correct and agreeing attempts that may follow."""
    prior, remaining = rule.prior, rule.band.attempts - now.requested
    judged, attempts, others = now.judged + remaining, now.attempts + remaining, now.judged - now.correct
    chances: dict[str | None, float] = {}
    for solved in range(remaining + 1):
        chance = beta_binomial(solved, remaining, now.correct + prior.correct, others + prior.other)
        for more in range(remaining - solved + 1):
            agree = beta_binomial(
                more, remaining - solved, now.top_wrong + prior.agree, others - now.top_wrong + prior.differ
            )
            reason = rule.reason(now.correct + solved, now.top_wrong + more, judged, attempts)
            chances[reason] = chances.get(reason, 0.0) + chance * agree
    return chances


@pytest.mark.parametrize(("prior", "missing"), [(Prior(), 0), (Prior(1.3, 4.0, 0.7, 3.0), 3)])
def test_the_likeliest_decision_is_that_of_the_enumeration(prior: Prior, missing: int) -> None:
    rule = StoppingRule(Band(attempts=12), error_rate=0.1, prior=prior)
    for judged in range(0, 12 - missing, 2):
        for correct in range(judged + 1):
            for top in range(judged - correct + 1):
                now = OutcomeCounts(correct, top, judged, judged, judged + missing)
                chances = enumerated(rule, now)
                assert sum(chances.values()) == pytest.approx(1)
                reason, chance = rule.likely_decision(now)
                assert chance == pytest.approx(max(chances.values()), abs=1e-9)
                assert chances[reason] == pytest.approx(chance, abs=1e-9)


def test_a_rule_given_priors_stops_each_problem_by_its_own() -> None:
    rule = StoppingRule(Band(attempts=16), error_rate=0.1)
    hard, sure = ProblemPrior(Prior(0.1, 20.0, 0.2, 5.0), 0.1), ProblemPrior(Prior(), 0.0)
    given = rule.given({"hard": hard, "sure": sure})
    none_correct = [(Outcome.WRONG, place + 1) for place in range(16)]
    assert given.of("other") is given
    assert [given.of(name).counts_at_stop(none_correct).requested for name in ("hard", "other", "sure")] == [2, 13, 16]
    assert given.of("hard") is given.of("hard")
    assert given.foresees
    assert not StoppingRule(Band(attempts=16)).given({"sure": sure}).foresees
    never_early = StoppingRule(Band(attempts=16), early_stopping=False).given({"hard": hard})
    assert never_early.of("hard").counts_at_stop(none_correct).requested == 16


PILOT = [(8, 800), (16, 3200)]


def test_means_are_scaled_and_turned_into_hours_and_money() -> None:
    plan = plan_stage("stage1", "m@1", 1000, PILOT, tokens_per_s=100.0, devices=2, prices=(0.0, 3.0))
    assert plan.attempts.mean == 12_000
    assert plan.tokens.mean == 2_000_000
    assert plan.hours is not None
    assert plan.hours.mean == pytest.approx(2_000_000 / 100 / 3600 * 2)
    assert plan.price is not None
    assert plan.price.mean == pytest.approx(6.0)
    assert str(plan.attempts) == "12 k (8 k to 16 k)"
    with_prompts = plan_stage("s", "m@1", 1000, PILOT, prices=(1.0, 3.0), prompt_tokens=50.0)
    assert with_prompts.price is not None
    assert with_prompts.price.mean == pytest.approx(6.0 + 12_000 * 50 / 1e6)
