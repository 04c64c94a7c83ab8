"""What an anchor corrects: the level, the spread and the sureness of expected pass rates, by hand and by simulation."""

from __future__ import annotations

from math import lgamma

import numpy as np
import polars as pl
import pytest

from curation.difficulty.refresh_forecast import Recalibration, recalibrate


def priors(mean: np.ndarray, size: float) -> pl.DataFrame:
    rows = {"problem": [f"p{number:05}" for number in range(len(mean))], "correct": mean * size}
    rest = {"agree": 0.5, "differ": 2.0, "error_rate": 0.05, "informed_by": "old 16"}
    return pl.DataFrame({**rows, "other": (1 - mean) * size}).with_columns(**{k: pl.lit(v) for k, v in rest.items()})


def test_the_correction_is_the_likeliest_one_of_all_near_it() -> None:
    """By the beta-binomial formula itself, with the prior of "nothing to correct"."""
    table = priors(np.array([0.1, 0.3, 0.5, 0.8]), 6.0)
    counts = pl.DataFrame({"problem": table["problem"], "policy": "x", "correct": [2, 1, 7, 8], "judged": [8, 5, 8, 8]})

    def value(shift: float, slope: float, size: float) -> float:
        total = -0.5 * ((shift / 0.5) ** 2 + (np.log(slope) / 0.3) ** 2 + (np.log(size) / 0.7) ** 2)
        for a, b, c, n in zip(table["correct"], table["other"], counts["correct"], counts["judged"], strict=True):
            mean, firm = 1 / (1 + (b / a) ** slope * np.exp(-shift)), size * (a + b)
            own = (mean * firm + c, (1 - mean) * firm + n - c)
            total += lgamma(own[0]) + lgamma(own[1]) - lgamma(sum(own))
            total -= lgamma(mean * firm) + lgamma((1 - mean) * firm) - lgamma(firm)
        return float(total)

    best = recalibrate(table, counts)
    here = value(best.shift, best.slope, best.size)
    near = (best.shift + 0.02, best.slope, best.size), (best.shift - 0.02, best.slope, best.size)
    near += (best.shift, best.slope * 1.02, best.size), (best.shift, best.slope / 1.02, best.size)
    near += (best.shift, best.slope, best.size * 1.04), (best.shift, best.slope, best.size / 1.04)
    assert all(value(*point) < here for point in near)


def test_priors_move_as_the_sentence_says() -> None:
    table = Recalibration(1.0, 0.5, 0.25).applied(priors(np.array([0.5, 0.9]), 8.0))
    sizes = (table["correct"] + table["other"]).to_numpy()
    assert sizes == pytest.approx([2.0, 2.0], rel=0.2)  # rounded to steps of a third
    means = (table["correct"].to_numpy() / sizes).tolist()
    assert means == pytest.approx([1 / (1 + np.exp(-1.0)), 1 / (1 + np.exp(-1.0) / 3)], abs=0.03)
    assert table["agree"].to_list() == [0.5, 0.5]
    sentence = Recalibration(1.0, 0.5, 0.25).sentence
    assert "+1.00 logits" in sentence
    assert "prior precision ×0.25" in sentence
