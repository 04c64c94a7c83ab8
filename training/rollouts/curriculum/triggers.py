"""Decide when to add harder problems or begin the next stage (paper, section 5.2).

A curve is flat if a line through `PLATEAU_WINDOW` values gains little and its slope's t value is below 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from training.rollouts.curriculum.settings import StageSettings

CURVE_STEPS = 512
"""Steps of each curve that are kept; windows are shorter."""

PLATEAU_WINDOW = 20
"""Steps over which a curve is called flat."""

REWARD_MIN_GAIN = 0.02
"""Gain of the mean reward over the window below which it is flat."""

LENGTH_MIN_GAIN = 0.05
"""Gain of the mean length over the window, as a share of it, below which it is flat."""

LIMITED_SHARE = 0.05
"""Share of responses that reach the length penalty, or are cut, from which the limit on the length binds."""

PATIENCE = 20
"""Steps after the window in which no further deferred problems come in."""

HARDER_SHARE = 0.25
"""Deferred problems that come in on a reward plateau, as a share of the active ones."""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A change of the run, and why.

    Example: ``SettingChange("active", 400, 500, "reward flat: +0.012 over 20 steps (t = 0.4)")``
    """

    setting: str
    old: float
    new: float
    reason: str


@dataclass(frozen=True, slots=True)
class Trend:
    """A line through a curve's last values: its gain, and its slope's t value."""

    window: int
    mean: float
    gain: float
    t_value: float


def trend(values: Sequence[float], window: int) -> Trend | None:
    """Fit a line by least squares; None for fewer than ``window`` values."""
    if len(values) < window:
        return None
    ys = values[-window:]
    mean_x, mean_y = (window - 1) / 2, sum(ys) / window
    spread = sum((x - mean_x) ** 2 for x in range(window))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in enumerate(ys)) / spread
    residual = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in enumerate(ys))
    error = math.sqrt(residual / (window - 2) / spread)
    t = slope / error if error > 0 else math.copysign(math.inf, slope) if slope else 0.0
    return Trend(window, mean_y, slope * (window - 1), t)


@dataclass(slots=True)
class TrainingCurves:
    """Means of what each step sampled; ``limited`` is the share that reached the length penalty or was cut."""

    reward: list[float] = field(default_factory=list)
    length: list[float] = field(default_factory=list)
    pass_rate: list[float] = field(default_factory=list)
    limited: list[float] = field(default_factory=list)

    def add(self, reward: float, length: float, pass_rate: float, limited: float) -> None:
        """Append a step's values."""
        for curve, value in zip(self._all, (reward, length, pass_rate, limited), strict=True):
            curve.append(value)
            del curve[:-CURVE_STEPS]

    def last(self, steps: int) -> TrainingCurves:
        """Return the curves of the last steps."""
        return TrainingCurves(*(curve[-steps:] for curve in self._all))

    @property
    def _all(self) -> tuple[list[float], ...]:
        return self.reward, self.length, self.pass_rate, self.limited


def reward_plateau(curves: TrainingCurves, floor: float) -> Trend | None:
    """Return the trend of flat rewards at a mean pass rate above ``floor``."""
    fit = _flat(trend(curves.reward, PLATEAU_WINDOW), REWARD_MIN_GAIN)
    return fit if fit is not None and fmean(curves.pass_rate[-PLATEAU_WINDOW:]) > floor else None


def length_plateau(curves: TrainingCurves) -> Trend | None:
    """Return the trend of flat lengths if the limit binds."""
    fit = trend(curves.length, PLATEAU_WINDOW)
    return _flat(fit, LENGTH_MIN_GAIN * fit.mean) if fit is not None and length_binds(curves) else None


def length_binds(curves: TrainingCurves) -> bool:
    """Return whether the length limit shortened recent responses."""
    return fmean(curves.limited[-PLATEAU_WINDOW:]) >= LIMITED_SHARE


def _flat(fit: Trend | None, min_gain: float) -> Trend | None:
    """Return the trend if it is flat."""
    return fit if fit is not None and abs(fit.gain) < min_gain and abs(fit.t_value) < 2 else None


def activate_deferred(
    curves: TrainingCurves, floor: float, step: int, last_change: int | None, active: int, deferred: int
) -> SettingChange | None:
    """Return how many deferred problems become active, on a reward plateau.

    Args:
        floor: the pass rate below which a problem is deferred.
        last_change: the step of the last such change.
    """
    fit = reward_plateau(curves, floor)
    has_cooled_down = last_change is None or step - last_change >= PLATEAU_WINDOW + PATIENCE
    if deferred == 0 or fit is None or not has_cooled_down:
        return None
    promoted = min(deferred, max(1, round(active * HARDER_SHARE)))
    reason = f"reward flat: {fit.gain:+.3f} over {fit.window} steps (t = {fit.t_value:.1f})"
    return SettingChange("active", active, active + promoted, reason)


def stage_end(stage: StageSettings, taken: int, curves: TrainingCurves, floor: float, *, grows: bool) -> str | None:
    """Return why the stage ends now, or None.

    Args:
        taken: steps of this stage.
        curves: since it began.
        floor: the pass rate that a reward plateau must exceed.
        grows: the next stage allows longer responses, so plateaus count only if the limit binds.
    """
    if stage.steps is not None and taken >= stage.steps:
        return f"{taken} steps"
    if grows and curves.limited and not length_binds(curves):
        return None
    if stage.until == "reward" and (fit := reward_plateau(curves, floor)) is not None:
        return f"reward flat at {fit.mean:.3f} over {fit.window} steps"
    if stage.until == "length" and (fit := length_plateau(curves)) is not None:
        return f"length flat at {fit.mean:.0f} over {fit.window} steps"
    return None
