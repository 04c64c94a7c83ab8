"""Sides of the band against sums by hand, and whether the model may be believed."""

from __future__ import annotations

import numpy as np
import pytest

from curation.config import Band
from curation.difficulty.priors import beta_sides
from tests.curation.difficulty.test_item_response import beta_binomial


def test_the_sides_are_the_beta_binomial_of_the_bands_attempts() -> None:
    band = Band(attempts=5, min_correct=1, max_pass_rate=0.6)
    rows = beta_sides(np.array([1.5, 0.2]), np.array([1.5, 3.0]), band)
    for (a, b), row in zip(((1.5, 1.5), (0.2, 3.0)), rows, strict=True):
        chances = [beta_binomial(correct, 5, a, b) for correct in range(6)]
        assert row == pytest.approx((chances[0], sum(chances[1:4]), sum(chances[4:])))
