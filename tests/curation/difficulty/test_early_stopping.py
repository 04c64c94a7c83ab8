"""Early stopping: the same decisions with fewer attempts, proved over all sequences; forecasts; unbiased pass rates."""

import itertools
from collections.abc import Iterator, Sequence
from functools import cache
from math import exp, lgamma

import pytest

from curation.config import Band
from curation.difficulty.early_stopping import (
    AttemptOutcome,
    OutcomeCounts,
    OutcomeTally,
    Prior,
    ProblemPrior,
    StoppingRule,
)
from curation.difficulty.pass_rates import decide
from curation.difficulty.planning import plan_stage
from curation.records import Outcome
from tests.curation.difficulty.attempt_letters import rates_of

KINDS: dict[str, AttemptOutcome] = {
    "c": (Outcome.CORRECT, 0),
    "1": (Outcome.WRONG, 1),
    "2": (Outcome.WRONG, 2),
    "n": (Outcome.NO_ANSWER, None),
    "b": (Outcome.BROKEN, None),
    "-": (None, None),  # the policy has no such attempt
}

BANDS = {
    "small": Band(attempts=4),
    "narrow": Band(attempts=5, min_correct=2, max_pass_rate=0.5),
    "any judged": Band(attempts=5, min_judged=1, max_pass_rate=0.6),
    "no label rule": Band(attempts=5, wrong_label_share=1.0, max_pass_rate=1.0),
    "high share": Band(attempts=5, wrong_label_share=0.75, min_correct=0, max_pass_rate=0.2),
}


def seen(letters: str) -> list[AttemptOutcome]:
    return [KINDS[letter] for letter in letters]


def counted(letters: Sequence[str]) -> OutcomeCounts:
    tally = OutcomeTally()
    for letter in letters:
        tally.add(*KINDS[letter])
    return tally.counts


@cache
def decided(band: Band) -> dict[OutcomeCounts, str | None]:
    """What `decide` says of every way that n attempts can end."""
    ends = sorted(
        {counted(letters) for letters in itertools.combinations_with_replacement(KINDS, band.attempts)}, key=repr
    )
    reasons = decide(rates_of(ends), band, "stage1")["reason"]
    return dict(zip(ends, reasons, strict=True))


JUDGED = "c12n"
"""What a failed verdict may turn out to be."""


def resolved(letters: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """All ways in which the failed verdicts of these attempts can turn out."""
    return itertools.product(*(JUDGED if letter == "b" else letter for letter in letters))


@pytest.mark.parametrize("name", BANDS)
def test_a_prefix_is_sealed_exactly_where_nothing_can_change_the_decision(name: str) -> None:
    """Over ALL sequences: `is_decided` is compared with what every completion of unasked and failed ones decides."""
    band = BANDS[name]
    rule, ends = StoppingRule(band), decided(band)

    @cache
    def reachable(letters: tuple[str, ...]) -> frozenset[str | None]:
        if "b" in letters:
            return frozenset().union(*(reachable(tuple(sorted(way))) for way in resolved(letters)))
        if len(letters) == band.attempts:
            return frozenset({ends[counted(letters)]})
        return frozenset().union(*(reachable(tuple(sorted((*letters, letter)))) for letter in f"{JUDGED}-"))

    for length in range(band.attempts + 1):
        for letters in itertools.combinations_with_replacement(KINDS, length):
            reasons, now = reachable(tuple(sorted(letters))), counted(letters)
            is_enough = now.judged >= band.required_judged or reasons == {"too_few_attempts"}
            is_over = length == band.attempts
            assert rule.is_decided(now) is (is_over or (is_enough and len(reasons) == 1)), (letters, reasons)


@pytest.mark.parametrize("name", BANDS)
def test_failed_verdicts_that_are_judged_later_need_no_further_attempt(name: str) -> None:
    """Over ALL sequences: the stop moves forward, never back, and the decision is the one of before or a new one."""
    rule = StoppingRule(BANDS[name])

    @cache
    def stop(letters: tuple[str, ...]) -> tuple[int, str | None]:
        at = rule.counts_at_stop(seen("".join(letters))).requested
        end = counted(letters[:at])
        return at, rule.reason(end.correct, end.top_wrong, end.judged, end.attempts)

    prefixes = set()
    for letters in itertools.product("c12nb", repeat=BANDS[name].attempts):
        at, reason = stop(letters)
        prefixes.add((letters[:at], reason))
    for prefix, reason in prefixes:
        for way in resolved(prefix):
            assert reason in (stop(way)[1], "verifier_failed"), (prefix, way)


@pytest.mark.parametrize(
    ("letters", "at"),
    [
        ("c" * 16, 13),  # 13 of 16 is too easy whatever the last three say
        ("1" * 16, 9),  # a majority of 16
        ("n" * 16, 16),  # never solved is known at the end only
        ("b" * 16, 16),  # nothing is known before the last, and what failed may be judged again
        ("b" + "n" * 8 + "c" + "n" * 6, 10),  # 1 + 1 + 6 may be correct, 1 + 6 agree
        ("cnnnnnnnn", 8),  # 8 left: no answer can have a majority, nor 13 be correct
        ("cccccccnnn", None),  # 7 + 6 = 13 may not be kept
    ],
)
def test_where_problems_stop_at_the_default_band(letters: str, at: int | None) -> None:
    point = StoppingRule(Band(attempts=16)).stopping_point(seen(letters))
    assert (point.requested if point.is_decided else None) == at


@pytest.mark.parametrize(
    ("error_rate", "prior", "chances"),
    [
        (0.0, Prior(), {"c": 0.35, "1": 0.2, "2": 0.15, "n": 0.2, "b": 0.1}),
        (0.2, Prior(0.6, 2.0, 0.5, 3.0), {"c": 0.1, "1": 0.9}),
    ],
)
@pytest.mark.parametrize("name", BANDS)
def test_the_pass_rate_is_unbiased_by_enumeration(
    name: str, error_rate: float, prior: Prior, chances: dict[str, float]
) -> None:
    rule = StoppingRule(BANDS[name], error_rate=error_rate, prior=prior)
    lost = chances.get("b", 0.0)
    total = judged = 0.0
    stack: list[tuple[str, float]] = [("", 1.0)]
    while stack:
        letters, chance = stack.pop()
        if letters and rule.should_stop(counted(letters)):
            estimate = rule.unbiased_pass_rate(seen(letters))
            if estimate is not None:
                total += chance * estimate
                judged += chance
            continue
        stack.extend((letters + letter, chance * more) for letter, more in chances.items() if more)
    assert total / judged == pytest.approx(chances["c"] / (1 - lost), abs=1e-12)


def test_without_a_stop_the_estimate_is_the_share_of_correct() -> None:
    rule = StoppingRule(Band(attempts=16), early_stopping=False)
    for letters in ("ccnn", "cbn1cb12", "b" * 5 + "c", "1" * 16):
        correct, judged = letters.count("c"), sum(letter != "b" for letter in letters)
        assert rule.unbiased_pass_rate(seen(letters)) == pytest.approx(correct / judged)
    assert rule.unbiased_pass_rate(seen("bb")) is None
    assert not rule.stopping_point(seen("c" * 15)).is_decided
    # orders that cannot stop early either: two attempts settle nothing at the default band
    assert StoppingRule(Band(attempts=16)).unbiased_pass_rate(seen("cbn1")) == pytest.approx(1 / 3)


def test_the_forecast_stops_earlier_and_waits_for_failed_verdicts() -> None:
    rule = StoppingRule(Band(attempts=16), error_rate=0.05)
    reason, chance = rule.likely_decision(counted("cccccccc"))
    assert reason == "too_easy"
    assert 0.9 < chance < 1
    assert rule.counts_at_stop(seen("c" * 16)).requested == 6  # without a forecast 13
    waiting = StoppingRule(Band(attempts=16), error_rate=0.2)
    assert waiting.should_stop(counted("ccccccc"))
    assert not waiting.should_stop(counted("cccccccb"))
    assert waiting.should_stop(counted("c" * 13 + "b"))


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
