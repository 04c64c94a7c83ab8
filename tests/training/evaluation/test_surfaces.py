"""Grids, the regression on log length, and the plots of a planted surface."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from training.evaluation.surfaces import Point, draw_surfaces, fit_log_length, grid_axes


def test_a_planted_slope_is_found() -> None:
    noise = [0.01, -0.01, 0.005, -0.005, 0.0]
    points = [Point(0, 0, 0.3 * math.log(20 + n) + 0.1 + noise[n % 5], 20.0 + n) for n in range(30)]
    fit = fit_log_length(points)
    assert fit is not None
    assert fit.low < 0.3 < fit.high
    assert fit.slope == pytest.approx(0.3, abs=0.02)
    assert fit.explained > 0.98
    assert fit_log_length([Point(0, 0, 0.5, 20.0)] * 5) is None


def test_a_planted_surface_is_drawn(tmp_path: Path) -> None:
    way = [(-2.0, 0.6), (-1.0, -0.3), (0.0, 0.0)]
    firsts, seconds = grid_axes(way, 5)
    assert 0.0 in firsts  # the trained model
    assert 0.0 in seconds
    points = [Point(a, b, 1 - 0.1 * (a - 0.5) ** 2 - b * b, 30 + 4 * a) for a in firsts for b in seconds]
    best = max(points, key=lambda point: point.reward)
    assert (best.first, best.second) == min(
        ((a, b) for a in firsts for b in seconds), key=lambda at: 0.1 * (at[0] - 0.5) ** 2 + at[1] ** 2
    )
    paths = draw_surfaces(points, way, ["start", "step 5", "trained"], (0.8, 0.15), tmp_path)
    assert [path.name for path in paths] == ["reward.png", "length.png", "reward_by_length.png"]
    assert all(path.stat().st_size > 5_000 for path in paths)
