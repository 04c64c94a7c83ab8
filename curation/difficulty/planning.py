"""Estimates the cost of sampling, with bootstrap intervals (95 %) over a pilot's problems (Efron 1979)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class PilotProblem:
    """A problem's number of attempts and their total tokens."""

    attempts: float
    tokens: float


@dataclass(frozen=True, slots=True)
class CostRates:
    """Tokens per second of all devices together, prices per million tokens, and mean prompt length."""

    tokens_per_s: float | None = None
    devices: int = 1
    price_out: float | None = None
    price_in: float | None = None
    prompt_tokens: float | None = None


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
        """Return the number, with its interval if any."""
        interval = f" ({short_number(self.low)} to {short_number(self.high)})" if self.low != self.high else ""
        return short_number(self.mean) + interval


@dataclass(frozen=True, slots=True)
class StagePlan:
    """A stage's expected cost; ``hours`` are of all devices together."""

    stage: str
    policy: str
    problems: int
    pilot: int
    rates: CostRates
    attempts: CostEstimate
    tokens: CostEstimate
    hours: CostEstimate | None
    price: CostEstimate | None

    def row(self) -> dict[str, Any]:
        """Return the plan as a JSON object."""
        return asdict(self)

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> StagePlan:
        """Return a plan from its JSON object."""
        names = ("attempts", "tokens", "hours", "price")
        estimates = {name: CostEstimate(**row[name]) if row[name] is not None else None for name in names}
        return cls(**{**row, **estimates, "rates": CostRates(**row["rates"])})


def plan_stage(
    stage: str, policy: str, problems: int, pilot: Sequence[PilotProblem], rates: CostRates, seed: int = 0
) -> StagePlan:
    """Return a stage's expected cost; ``problems`` includes the pilot's, at least one."""

    def estimate(values: Sequence[float]) -> CostEstimate:
        means = np.random.default_rng(seed).choice(values, (RESAMPLES, len(values))).mean(axis=1)
        low, high = np.quantile(means, (0.025, 0.975))
        return CostEstimate(float(np.mean(values)), float(low), float(high)).scaled(problems)

    tokens = estimate([problem.tokens for problem in pilot])
    hours = tokens.scaled(rates.devices / rates.tokens_per_s / 3600) if rates.tokens_per_s else None
    price = None
    if rates.price_out is not None or rates.price_in is not None:
        out, prompt = (rates.price_out or 0.0) / 1e6, (rates.price_in or 0.0) * (rates.prompt_tokens or 0.0) / 1e6
        price = estimate([problem.tokens * out + problem.attempts * prompt for problem in pilot])
    attempts = estimate([problem.attempts for problem in pilot])
    return StagePlan(stage, policy, problems, len(pilot), rates, attempts, tokens, hours, price)


def short_number(value: float) -> str:
    """Return a short number: 4.21 G, 233 k, 64."""
    for size, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
