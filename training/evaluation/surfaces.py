"""Plot reward and length on a plane of weights, and reward by length."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def grid_axes(coordinates: Sequence[tuple[float, float]], size: int) -> tuple[list[float], list[float]]:
    """Return the grid's values along both directions, 0 among them."""
    firsts, seconds = zip(*coordinates, strict=True)
    return _axis(firsts, size), _axis(seconds, size)


def _axis(values: Sequence[float], size: int) -> list[float]:
    low, high = min(values), max(values)
    reach = MARGIN * ((high - low) or 1.0)
    low, high = low - reach, high + reach
    axis = [low + (high - low) * place / (size - 1) for place in range(size)]
    nearest = min(range(size), key=lambda place: abs(axis[place]))
    axis[nearest] = 0.0
    return axis


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
    way: Sequence[tuple[float, float]],
    explained: tuple[float, float],
    folder: Path,
) -> list[Path]:
    """Write reward.png, length.png and reward_by_length.png; return their paths.

    Args:
        way: the states' coordinates, in order.
        explained: each direction's share of the states' variance.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for heights, name, title in (
        ([point.reward for point in points], "reward.png", "reward without length penalty"),
        ([point.tokens for point in points], "length.png", "mean length, tokens"),
    ):
        figure, axes = _canvas(7.2, 5.4)
        firsts, seconds = [point.first for point in points], [point.second for point in points]
        filled = axes.tricontourf(firsts, seconds, heights, levels=18)
        axes.plot([first for first, _ in way], [second for _, second in way], "-o", color="#d1495b", ms=3.5, lw=1.6)
        axes.plot(*way[0], "o", color="white", mec="#222222", ms=8, label="start")
        axes.plot(*way[-1], "*", color="white", mec="#222222", ms=14, label="trained")
        axes.set_xlabel(f"first direction ({explained[0]:.0%} of the variance)")
        axes.set_ylabel(f"second direction ({explained[1]:.0%})")
        axes.set_title(title)
        axes.legend(fontsize=8)
        figure.colorbar(filled, ax=axes)
        figure.savefig(folder / name, dpi=130)
    _draw_fit(points, folder / "reward_by_length.png")
    return [folder / name for name in ("reward.png", "length.png", "reward_by_length.png")]


def _draw_fit(points: Sequence[Point], path: Path) -> None:
    figure, axes = _canvas(6.4, 4.4)
    tokens, fit = [point.tokens for point in points], fit_log_length(points)
    axes.scatter(tokens, [point.reward for point in points], s=22, color="#3b76b5", alpha=0.8)
    if fit is not None:
        steps = np.geomspace(min(tokens), max(tokens), 61)
        axes.plot(steps, fit.slope * np.log(steps) + fit.intercept, color="#d1495b", lw=1.8)
        axes.set_title(
            f"reward = {fit.slope:.3f} ln(length) {fit.intercept:+.3f}\n"
            f"slope {fit.low:.3f} to {fit.high:.3f}, R² {fit.explained:.2f}",
            fontsize=10,
        )
    axes.set_xscale("log")
    axes.set_xlabel("mean length, tokens (log)")
    axes.set_ylabel("reward without length penalty")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=130)


def _canvas(width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()
