"""What to change when learning slows: harder problems, longer answers, smaller batches, eps_high.

Pure functions of recorded curves, one value a step. Each returns what to do with its reason, or None.

A curve is flat where a straight line through its last ``window`` values rises or falls by less than ``least_gain``
over the window, and its slope is not clearly different from zero (its t value is under 2): a slow but sure climb is
no plateau, and neither is a fall, to which more difficulty would be the wrong answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from training.rollouts.curriculum.settings import CurriculumSettings, PlateauSettings


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One change of the run: what, from which value to which, and why.

    Example: ``SettingChange("length", 16384, 24576, "length flat: +1.2 % over 20 steps (t = 0.4)")``
    """

    setting: str
    old: float
    new: float
    reason: str


@dataclass(frozen=True, slots=True)
class Trend:
    """A straight line through a window: its gain from end to end, and the t value of its slope."""

    mean: float
    gain: float
    t_value: float


@dataclass(frozen=True, slots=True)
class KVCacheModel:
    """Room on a generator's accelerator: bytes for the KV cache, and bytes that one token takes.

    A token of a transformer takes ``2 * layers * kv_heads * head_size * bytes`` (keys and values).
    Example: ``KVCacheModel(kv_bytes=40e9, bytes_per_token=131072)`` for 40 GB and an 8B model with 8 KV heads in bf16.
    """

    kv_bytes: float
    bytes_per_token: float

    def concurrent(self, mean_length: float) -> int:
        """Return how many sequences of that mean length (prompt and answer, tokens) fit at once."""
        return int(self.kv_bytes // (self.bytes_per_token * max(mean_length, 1.0)))


def trend(values: Sequence[float], window: int) -> Trend | None:
    """Fit a straight line by least squares through the last ``window`` values; None where there are fewer."""
    if len(values) < window:
        return None
    ys = values[-window:]
    mean_x, mean_y = (window - 1) / 2, sum(ys) / window
    spread = sum((x - mean_x) ** 2 for x in range(window))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in enumerate(ys)) / spread
    residual = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in enumerate(ys))
    error = math.sqrt(residual / (window - 2) / spread)
    t = slope / error if error > 0 else math.copysign(math.inf, slope) if slope else 0.0
    return Trend(mean_y, slope * (window - 1), t)


def is_plateau(fit: Trend | None, least_gain: float) -> bool:
    """Return whether a trend is a plateau: a small gain, and a slope not clearly different from zero."""
    return fit is not None and abs(fit.gain) < least_gain and abs(fit.t_value) < 2


def has_cooled_down(step: int, last_change: int | None, settings: PlateauSettings) -> bool:
    """Return whether the curve has had time to answer to the last change."""
    return last_change is None or step - last_change >= settings.window + settings.patience


def activate_deferred(
    rewards: Sequence[float],
    step: int,
    last_change: int | None,
    active: int,
    deferred: int,
    settings: CurriculumSettings,
) -> SettingChange | None:
    """Return, on a reward plateau, how many deferred problems come in.

    Args:
        rewards: mean reward of each step.
        active, deferred: how many problems the pools hold.
    """
    fit = trend(rewards, settings.reward_plateau.window)
    if deferred == 0 or not is_plateau(fit, settings.reward_plateau.min_gain):
        return None
    if not has_cooled_down(step, last_change, settings.reward_plateau):
        return None
    assert fit is not None
    promoted = min(deferred, max(1, round(active * settings.harder_share)))
    return SettingChange(
        "active", active, active + promoted, f"reward flat: {_describe_trend(fit, settings.reward_plateau, 1.0)}"
    )


def extend_length(
    lengths: Sequence[float], step: int, last_change: int | None, allowed: int, settings: CurriculumSettings
) -> SettingChange | None:
    """Return, on a length plateau, the next un-penalised length of the schedule.

    Args:
        lengths: mean response length of each step, tokens.
        allowed: the present un-penalised length, l_max - l_cache.
    """
    further = [length for length in settings.length_schedule if length > allowed]
    fit = trend(lengths, settings.length_plateau.window)
    if not further or fit is None or not has_cooled_down(step, last_change, settings.length_plateau):
        return None
    if not is_plateau(fit, settings.length_plateau.min_gain * fit.mean):
        return None
    return SettingChange(
        "length", allowed, further[0], f"length flat: {_describe_trend(fit, settings.length_plateau, fit.mean)}"
    )


def shrink_batches(
    n_async: int, n_batch: int, group: int, mean_length: float, memory: KVCacheModel
) -> list[SettingChange]:
    """Lower n_async and n_batch where sequences of this length no longer fit; n_async/n_batch stays at most 2.

    Args:
        n_async, n_batch: sequences generated at once, and per update; both stay multiples of ``group``.
        mean_length: tokens of prompt and answer.
    """
    fits = memory.concurrent(mean_length)
    if n_async <= fits:
        return []
    fewer = max(group, fits // group * group)
    reason = f"{fits} sequences of {mean_length:.0f} tokens fit the KV cache"
    changes = [SettingChange("n_async", n_async, fewer, reason)]
    batch = max(group, min(n_batch, fewer) // group * group)
    if batch < n_batch:
        changes.append(
            SettingChange("n_batch", n_batch, batch, f"{reason}; a batch larger than n_async would wait for itself")
        )
    return changes


def adjust_eps_high(
    entropy: Sequence[float], target: float, eps_high: float, settings: CurriculumSettings
) -> SettingChange | None:
    """Raise eps_high where the entropy falls below its target, lower it where it rises above, within its range."""
    if not settings.adapt_eps_high or not entropy:
        return None
    low, high = settings.eps_high_range
    departure = entropy[-1] / target - 1 if target else 0.0
    if abs(departure) <= settings.entropy_tolerance:
        return None
    step = settings.eps_high_step if departure < 0 else -settings.eps_high_step
    new = min(high, max(low, eps_high + step))
    if new == eps_high:
        return None
    return SettingChange("eps_high", eps_high, new, f"entropy {entropy[-1]:.3f} is {departure:+.0%} off {target:.3f}")


def _describe_trend(fit: Trend, settings: PlateauSettings, unit: float) -> str:
    gain = f"{fit.gain / unit:+.1%}" if unit != 1.0 else f"{fit.gain:+.3f}"
    return f"{gain} over {settings.window} steps (t = {fit.t_value:.1f})"
