"""Sides of the band against sums by hand, and whether the model may be believed."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from curation.config import Band
from curation.difficulty.item_response import fit
from curation.difficulty.priors import beta_sides, calibration
from tests.curation.difficulty.simulated import simulated
from tests.curation.difficulty.test_item_response import beta_binomial

ABILITIES = {"weak": 0.0, "strong": 1.0}


def test_the_sides_are_the_beta_binomial_of_the_bands_attempts() -> None:
    band = Band(attempts=5, min_correct=1, max_pass_rate=0.6)
    rows = beta_sides(np.array([1.5, 0.2]), np.array([1.5, 3.0]), band)
    for (a, b), row in zip(((1.5, 1.5), (0.2, 3.0)), rows, strict=True):
        chances = [beta_binomial(correct, 5, a, b) for correct in range(6)]
        assert row == pytest.approx((chances[0], sum(chances[1:4]), sum(chances[4:])))


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
