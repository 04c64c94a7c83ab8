"""Posteriors of pass rates: against sums by hand, against simulated truth, and whether the model may be believed."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from curation.config import Band
from curation.difficulty.item_response import DIFFICULTIES, ItemResponseModel, fit
from curation.difficulty.priors import beta_sides, calibration, pass_rate_posteriors
from tests.curation.difficulty.simulated import counts_of, simulated, simulated_rates
from tests.curation.difficulty.test_item_response import beta_binomial

ABILITIES = {"weak": 0.0, "strong": 1.0}


def at_one_difficulty(difficulty: float, concentration: float) -> ItemResponseModel:
    weights = (np.abs(DIFFICULTIES - difficulty) < 1e-9).astype(float) + 1e-300
    return ItemResponseModel({"x": difficulty}, weights / weights.sum(), (1.0,), concentration)


def test_where_the_difficulty_is_known_the_pass_rate_is_a_beta_distribution() -> None:
    model = at_one_difficulty(0.0, 4.0)  # Beta(2, 2) before, Beta(3, 4) after one of three correct
    table = pass_rate_posteriors(model, counts_of([("p", "x", 1, 3)]), "x", pl.Series(["q", "p"]))
    assert table["problem"].to_list() == ["q", "p"]
    assert table["mean"].to_list() == pytest.approx([0.5, 3 / 7])
    # quantiles of Beta(2, 2) and Beta(3, 4), from tables
    assert table["low"].to_list() == pytest.approx([0.09430, 0.11812], abs=2e-4)
    assert table["high"].to_list() == pytest.approx([0.90570, 0.77722], abs=2e-4)


def test_the_sides_are_the_beta_binomial_of_the_bands_attempts() -> None:
    band = Band(attempts=5, min_correct=1, max_pass_rate=0.6)
    rows = beta_sides(np.array([1.5, 0.2]), np.array([1.5, 3.0]), band)
    for (a, b), row in zip(((1.5, 1.5), (0.2, 3.0)), rows, strict=True):
        chances = [beta_binomial(correct, 5, a, b) for correct in range(6)]
        assert row == pytest.approx((chances[0], sum(chances[1:4]), sum(chances[4:])))


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Also where the policy's own attempts are few or none, and the others' many."""
    rates = simulated_rates(3000, ABILITIES, 8.0, seed=11)["strong"]
    rng, own = np.random.default_rng(0), pl.col("policy") == "strong"
    others = simulated(3000, ABILITIES, 16, 8.0, seed=11).filter(~own)
    made = [(f"p{number:04}", number % 10) for number in range(3000)]
    tried = [(name, "strong", int(rng.binomial(few, rate)), few) for (name, few), rate in zip(made, rates, strict=True)]
    table, truth = others.vstack(counts_of(tried)), {name: rate for (name, _), rate in zip(made, rates, strict=True)}
    ids = pl.Series(sorted(truth))
    posterior = pass_rate_posteriors(fit(table), table, "strong", ids)
    true = np.array([truth[name] for name in ids])
    held = (posterior["low"].to_numpy() <= true) & (true <= posterior["high"].to_numpy())
    assert 0.93 < held.mean() < 0.97
    raw = table.filter(own & (pl.col("judged") > 0)).select("problem", raw=pl.col("correct") / pl.col("judged"))
    both = posterior.join(raw, on="problem").with_columns(true=pl.col("problem").replace_strict(truth))
    errors = both.select(((pl.col("mean", "raw") - pl.col("true")) ** 2).mean()).row(0)
    assert errors[0] < 0.5 * errors[1]


def test_calibration_holds_for_a_policy_like_the_others_and_fails_for_one_that_is_not() -> None:
    table = simulated(2000, ABILITIES, 16, 10.0, seed=4)
    alike = calibration(fit(table), table, "strong")
    assert alike.holds
    assert alike.tenths["attempts"].sum() == 16 * 2000
    assert (alike.tenths["expected"] - alike.tenths["seen"]).abs().max() < 0.05

    easy_first = pl.when(pl.col("policy") == "strong").then(16 - pl.col("correct")).otherwise("correct")
    turned = table.with_columns(correct=easy_first)  # it solves what the other does not
    model = fit(table.vstack(turned.filter(pl.col("policy") == "strong").with_columns(policy=pl.lit("turned"))))
    both = table.vstack(turned.filter(pl.col("policy") == "strong").with_columns(policy=pl.lit("turned")))
    failed = calibration(model, both, "turned")
    assert not failed.holds
    assert failed.worst > 0.3
