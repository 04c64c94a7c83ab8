"""Priors from the item response model on simulated policies: they stay below the error rate, or refuse themselves."""

import json
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from curation.config import Band
from curation.config.sources import PriorAttempts
from curation.difficulty.early_stopping import AttemptOutcome, StoppingRule
from curation.difficulty.item_response import difficulty_posteriors, fit, observations, prior_counts, rollout_counts
from curation.difficulty.priors import LearntPriors, as_priors, beta_sides, learn_priors, problem_priors, replay
from curation.records import GoldilocksError, Outcome
from tests.curation.difficulty.simulated import COUNTS, simulated, simulated_rates
from tests.curation.difficulty.test_item_response import beta_binomial

EXACT = StoppingRule(Band(attempts=16))


def attempts_at(rates: Sequence[float], seed: int) -> dict[str, list[AttemptOutcome]]:
    """16 attempts at each problem; a wrong one agrees with no other."""
    rng = np.random.default_rng(seed)
    return {
        f"p{number:04}": [
            (Outcome.CORRECT, 0) if right else (Outcome.WRONG, 1 + place)
            for place, right in enumerate(rng.random(16) < rate)
        ]
        for number, rate in enumerate(rates)
    }


def learnt(
    counts: pl.DataFrame, made: dict[str, list[AttemptOutcome]], anchor: int, error_rate: float = 0.1
) -> LearntPriors:
    """What the first ``anchor`` problems and everyone else's counts teach."""
    own, rows = {}, []
    for name in list(made)[:anchor]:
        own[name] = made[name][: EXACT.ending(made[name])[1]]
        correct = sum(outcome is Outcome.CORRECT for outcome, _ in own[name])
        rows.append((name, "new", correct, len(own[name]), min(1, len(own[name]) - correct)))
    rates = pl.DataFrame(rows, {**COUNTS, "top_wrong_votes": pl.Int64}, orient="row")
    everyone = pl.concat([counts, rates.select(COUNTS.names())])
    return learn_priors(everyone, rates, "new", pl.Series("problem", list(made)), own, EXACT, error_rate)


def test_others_that_mislead_are_refused_in_a_sentence() -> None:
    """What others find hard is easy for this policy: the anchor says so, and nothing is foreseen."""
    rates = simulated_rates(1500, {"old": 0.0}, None, seed=1)["old"]
    rng = np.random.default_rng(1)
    rows = [(f"p{place:04}", "old", int(rng.binomial(16, rate)), 16) for place, rate in enumerate(rates)]
    told = learnt(pl.DataFrame(rows, COUNTS, orient="row"), attempts_at((1 - rates).tolist(), 1), 150)
    assert not told.hold
    assert told.sentence.startswith("the difficulty model is not used: ")


def test_a_replay_that_loses_too_much_is_refused() -> None:
    """Overconfident priors: everything is expected to be solved half the time."""
    made = attempts_at([0.01] * 100 + [0.99] * 100, seed=1)
    model = fit(simulated(200, {"old": 0.0}, 16, None, seed=1))
    table = problem_priors(model, COUNTS.to_frame(), "old", pl.Series("problem", list(made)), (0.5, 0.5), 0.1)
    sure = table.with_columns(correct=pl.lit(200.0), other=pl.lit(200.0))
    told = replay(EXACT.given(as_priors(sure)), EXACT, made, 0.1)
    assert told.lost > 150
    assert not told.holds


def test_a_prior_has_the_mean_of_the_posterior_and_knows_nothing_of_the_own_attempts() -> None:
    counts = simulated(800, {"a": 0.0, "b": 1.0, "new": 2.0}, 16, 20.0, seed=2)
    model, names = fit(counts), counts["problem"].unique().sort()
    others = counts.filter(pl.col("policy") != "new")
    table = problem_priors(model, counts, "new", names, (0.5, 1.5), 0.1)
    assert table.equals(problem_priors(model, others, "new", names, (0.5, 1.5), 0.1))
    seen = observations(others, names)
    expected = (difficulty_posteriors(model, seen) @ model.means("new"))[seen.pattern]
    mean = (table["correct"] / (table["correct"] + table["other"])).to_numpy()
    assert np.abs(mean - expected).max() < 0.03
    assert table.select("agree", "differ", "error_rate").unique().rows() == [(0.5, 1.5, 0.1)]


def test_rollouts_are_policies_by_window_of_steps() -> None:
    rows = [("a", step, 1, 2) for step in range(100)] + [("b", 3, 0, 4)]
    trained = pl.DataFrame(rows, ["problem", "step", "correct", "judged"], orient="row")
    counts = rollout_counts(trained)
    assert counts["policy"].n_unique() == 8
    assert counts.select(pl.col("correct", "judged").sum()).row(0) == (100, 204)
    assert counts.filter(pl.col("problem") == "b").rows() == [("b", "training, steps 0 to 12", 0, 4)]
    assert rollout_counts(trained.head(0)).height == 0


def test_pass_rates_that_came_with_the_rows_are_attempts_of_a_named_policy() -> None:
    rows = [
        ("a", "big", {"llama8b_solve_rate": 0.875}),
        ("b", "big", {"llama8b_solve_rate": None}),
        ("c", "open", {"pass_rate_72b_tir": "0.25"}),
        ("d", "open", {"pass_rate_72b_tir": "n/a"}),
        ("e", "counted", {"pass_rate_passed": 3, "pass_rate_total": 5}),
        ("f", "other", {"llama8b_solve_rate": 0.5}),
    ]
    written = [(name, source, json.dumps(meta)) for name, source, meta in rows]
    problems = pl.DataFrame(written, ["id", "source", "meta"], orient="row")
    stated = {
        "big": (PriorAttempts(policy="llama", rate="llama8b_solve_rate", attempts=64),),
        "open": (PriorAttempts(policy="qwen", rate="pass_rate_72b_tir", attempts=32),),
        "counted": (PriorAttempts(policy="grader", rate="pass_rate_passed", attempts="pass_rate_total"),),
    }
    found = prior_counts(problems, stated)
    assert found.rows() == [("a", "llama", 56, 64), ("c", "qwen", 8, 32), ("e", "grader", 3, 5)]
    wrong = problems.with_columns(meta=pl.lit(json.dumps({"llama8b_solve_rate": 1.5})))
    with pytest.raises(GoldilocksError, match="which is no pass rate"):
        prior_counts(wrong, stated)


def test_the_sides_are_the_beta_binomial_of_the_bands_attempts() -> None:
    band = Band(attempts=5, min_correct=1, max_pass_rate=0.6)
    rows = beta_sides(np.array([1.5, 0.2]), np.array([1.5, 3.0]), band)
    for (a, b), row in zip(((1.5, 1.5), (0.2, 3.0)), rows, strict=True):
        chances = [beta_binomial(correct, 5, a, b) for correct in range(6)]
        assert row == pytest.approx((chances[0], sum(chances[1:4]), sum(chances[4:])))
