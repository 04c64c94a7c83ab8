"""Find two principal directions of the weights in training, and plot reward and length on their plane.

Sources: arXiv 2506.10910, section 7; arXiv 1712.09913.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from curation.records import StoreError
from training.evaluation.estimators import student
from training.optimisation.model import load_model, load_tokenizer, save_model

PLANE = 2
"""Directions of a plane."""


@dataclass(frozen=True, slots=True)
class Directions:
    """A plane through the last state, at (0, 0).

    ``weights`` [states, 2] combine the centred states into the unit vectors; ``explained`` are shares of the variance.
    """

    states: tuple[Path, ...]
    weights: tuple[tuple[float, float], ...]
    coordinates: tuple[tuple[float, float], ...]
    explained: tuple[float, float]


def principal_directions(states: Sequence[Path]) -> Directions:
    """Return the plane of successive states; directions point from the first to the last."""
    if len(states) <= PLANE:
        raise StoreError(
            f"{len(states)} states of the weights span no plane; train with checkpoints.trajectory set to fewer steps"
        )
    gram = torch.zeros(len(states), len(states), dtype=torch.float64)
    for _, _, values in _tensors(states):
        centred = values - values.mean(0)
        gram += centred @ centred.T
    values, vectors = torch.linalg.eigh(gram)
    values, vectors = values.flip(0)[:PLANE].clamp(min=0), vectors.flip(1)[:, :PLANE]
    if values[PLANE - 1] <= 1e-12 * max(float(gram.trace()), 1e-300):
        raise StoreError(
            f"the states of {states[-1].parent} are on one line, or equal, and span no plane; train longer"
        )
    lengths = values.sqrt()
    combined = vectors / lengths  # c = Xc^T u / sqrt(value) has length 1
    scores = vectors * lengths  # Xc c
    coordinates = scores - scores[-1]
    signs = torch.where(coordinates[0] > 0, -1.0, 1.0).double()
    combined, coordinates = combined * signs, coordinates * signs
    share = values / gram.trace()
    return Directions(
        tuple(states),
        tuple((float(a), float(b)) for a, b in combined),
        tuple((float(a), float(b)) for a, b in coordinates),
        (float(share[0]), float(share[1])),
    )


def write_point(directions: Directions, first: float, second: float, folder: Path) -> Path:
    """Write the model w* + first c1 + second c2; at (0, 0) it is w* bit for bit."""
    last = directions.states[-1]
    weights = torch.tensor(directions.weights, dtype=torch.float64) @ torch.tensor([first, second], dtype=torch.float64)
    state: dict[str, Tensor] = {}
    for name, base, values in _tensors(directions.states):
        step = (weights @ (values - values.mean(0))).reshape(base.shape)
        state[name] = (base.double() + step).to(base.dtype) if first or second else base
    save_model(load_model(last), load_tokenizer(last), folder, state=state)
    return folder


def _tensors(states: Sequence[Path]) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield name, last value, and all values [states, size] in float64 of floating tensors."""
    files = [_files(state) for state in states]
    for name in sorted(files[-1]):
        if lacking := [state for state, names in zip(states, files, strict=True) if name not in names]:
            raise StoreError(f"{lacking[0]} has no tensor {name}; it is of another model")
        values = [names[name].get_tensor(name) for names in files]
        if len({value.shape for value in values}) > 1:
            raise StoreError(
                f"{name} has different shapes in {states[0]} and {states[-1]}; they are of different models"
            )
        if values[-1].is_floating_point():
            yield name, values[-1], torch.stack([value.double().flatten() for value in values])


def _files(folder: Path) -> dict[str, Any]:
    """Return each tensor's open file."""
    from safetensors import safe_open

    files = [safe_open(str(path), "pt") for path in sorted(folder.glob("*.safetensors"))]
    if not files:
        raise StoreError(f"{folder} holds no weights (*.safetensors)")
    return {name: file for file in files for name in file.keys()}  # type: ignore[no-untyped-call]  # noqa: SIM118 - no mapping


MARGIN = 0.5
"""The grid's margin per side, as a share of the states' range."""


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
        slope = f"slope {self.low:.3f} to {self.high:.3f} (95 %), R² {self.explained:.2f}"
        return f"reward = {self.slope:.3f} ln(length) {self.intercept:+.3f}, {slope}"


def grid_axes(coordinates: Sequence[tuple[float, float]], size: int) -> list[list[float]]:
    """Return the grid's values along both directions, with 0."""
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
    """Draw reward and length on the plane, and reward by length; ``way`` are the states' coordinates."""
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
