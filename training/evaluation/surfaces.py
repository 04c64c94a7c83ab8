"""Plot reward and length on a plane of weights, and reward by length."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from training.evaluation.estimators import student

MARGIN = 0.5
"""The grid's margin on both sides, as a share of the states' range."""


@dataclass(frozen=True, slots=True)
class Point:
    """A model on the plane; its reward is without length penalty."""

    first: float
    second: float
    reward: float
    tokens: float


@dataclass(frozen=True, slots=True)
class LogFit:
    """The regression reward = slope · ln(length) + intercept, with the slope's 95 % interval."""

    slope: float
    low: float
    high: float
    intercept: float
    explained: float

    @property
    def phrase(self) -> str:
        """Return the fit as a line."""
        slope = f"slope {self.low:.3f} to {self.high:.3f} (95 %), R² {self.explained:.2f}"
        return f"reward = {self.slope:.3f} ln(length) {self.intercept:+.3f}, {slope}"


def grid_axes(coordinates: Sequence[tuple[float, float]], size: int) -> list[list[float]]:
    """Return the grid's values along both directions, 0 among them."""
    axes = []
    for values in zip(*coordinates, strict=True):
        reach = MARGIN * ((max(values) - min(values)) or 1.0)
        axis = np.linspace(min(values) - reach, max(values) + reach, size)
        axis[np.abs(axis).argmin()] = 0.0
        axes.append(axis.tolist())
    return axes


def fit_log_length(points: Sequence[Point]) -> LogFit | None:
    """Return the least-squares fit of reward on log length; None for fewer than three lengths."""
    lengths = [math.log(point.tokens) for point in points if point.tokens > 0]
    rewards = [point.reward for point in points if point.tokens > 0]
    if len(set(lengths)) <= 2:
        return None
    slope, intercept = statistics.linear_regression(lengths, rewards)
    spread, total, degrees = statistics.variance(lengths), statistics.variance(rewards), len(lengths) - 2
    explained = slope**2 * spread / total if total else 0.0
    reach = student(degrees) * math.sqrt(max(1 - explained, 0.0) * total / spread / degrees)
    return LogFit(slope, slope - reach, slope + reach, intercept, explained)


def draw_surfaces(
    points: Sequence[Point],
    fit: LogFit | None,
    way: Sequence[tuple[float, float]],
    explained: tuple[float, float],
    path: Path,
) -> None:
    """Draw reward and length on the plane, and reward by length.

    Args:
        way: the states' coordinates, in order.
        explained: each direction's share of the states' variance.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(20, 5.4), layout="constrained")
    FigureCanvasAgg(figure)
    *planes, by_length = figure.subplots(1, 3)
    firsts, seconds = [point.first for point in points], [point.second for point in points]
    rewards, tokens = [point.reward for point in points], [point.tokens for point in points]
    titles = {"reward without length penalty": rewards, "mean length, tokens": tokens}
    for axes, (title, heights) in zip(planes, titles.items(), strict=True):
        figure.colorbar(axes.tricontourf(firsts, seconds, heights, levels=18), ax=axes)
        axes.plot(*zip(*way, strict=True), "-o", color="#d1495b", ms=3.5, lw=1.6)
        axes.plot(*way[0], "o", color="white", mec="#222222", ms=8, label="start")
        axes.plot(*way[-1], "*", color="white", mec="#222222", ms=14, label="trained")
        axes.set_xlabel(f"first direction ({explained[0]:.0%} of the variance)")
        axes.set_ylabel(f"second direction ({explained[1]:.0%})")
        axes.set_title(title)
        axes.legend(fontsize=8)
    by_length.scatter(tokens, rewards, s=22, color="#3b76b5", alpha=0.8)
    if fit is not None:
        steps = np.geomspace(min(tokens), max(tokens), 61)
        by_length.plot(steps, fit.slope * np.log(steps) + fit.intercept, color="#d1495b", lw=1.8)
        by_length.set_title(fit.phrase, fontsize=10)
    by_length.set_xscale("log")
    by_length.set_xlabel("mean length, tokens (log)")
    by_length.set_ylabel("reward without length penalty")
    figure.savefig(path, dpi=130)
