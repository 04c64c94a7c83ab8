"""Estimates the cost of sampling, with 95 % bootstrap intervals over a pilot's problems (Efron 1979)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

RESAMPLES = 1000
ESTIMATES = ("attempts", "tokens", "hours", "price")


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """An expected number with its 95 % interval."""

    mean: float
    low: float
    high: float

    def scaled(self, factor: float) -> CostEstimate:
        """Return the estimate times ``factor``."""
        return CostEstimate(self.mean * factor, self.low * factor, self.high * factor)

    def __str__(self) -> str:
        """Return the number, with any interval."""
        interval = f" ({short_number(self.low)} to {short_number(self.high)})" if self.low != self.high else ""
        return short_number(self.mean) + interval


@dataclass(frozen=True, slots=True)
class StagePlan:
    """A stage's expected cost; ``hours`` and ``tokens_per_s`` are of all devices together."""

    stage: str
    policy: str
    problems: int
    pilot: int
    tokens_per_s: float | None
    devices: int
    prompt_tokens: float | None
    attempts: CostEstimate
    tokens: CostEstimate
    hours: CostEstimate | None
    price: CostEstimate | None


def plan_stage(
    stage: str,
    policy: str,
    problems: int,
    pilot: Sequence[tuple[float, float]],
    *,
    tokens_per_s: float | None = None,
    devices: int = 1,
    prices: tuple[float, float] | None = None,
    prompt_tokens: float | None = None,
) -> StagePlan:
    """Return a stage's expected cost.

    Args:
        problems: of the stage, including the pilot's.
        pilot: each problem's attempts and tokens, at least one.
        prices: per million prompt and response tokens.
    """
    attempts, tokens = np.array(pilot, dtype=float).T
    draws = np.random.default_rng(0).integers(0, len(pilot), (RESAMPLES, len(pilot)))

    def estimate(values: Any) -> CostEstimate:
        low, high = np.quantile(values[draws].mean(axis=1), (0.025, 0.975))
        return CostEstimate(float(values.mean()), float(low), float(high)).scaled(problems)

    price = None
    if prices is not None:
        price = estimate((attempts * (prompt_tokens or 0.0) * prices[0] + tokens * prices[1]) / 1e6)
    hours = estimate(tokens).scaled(devices / tokens_per_s / 3600) if tokens_per_s else None
    costs = (estimate(attempts), estimate(tokens), hours, price)
    return StagePlan(stage, policy, problems, len(pilot), tokens_per_s, devices, prompt_tokens, *costs)


def short_number(value: float) -> str:
    """Format a number: 4.21 G, 233 k, 64."""
    for size, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
