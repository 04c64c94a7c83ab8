"""What a stage of sampling will cost, from a pilot of some of its problems: attempts, tokens, hours and a price.

Per problem the pilot gives the attempts until its stop and their tokens. Means are scaled to the stage's problems; the
interval is the 2.5 and 97.5 % quantiles of a bootstrap over the pilot's problems (Efron 1979), seeds fixed. It says
how sure the mean is given the pilot, not how steady the engine's speed will be: that is taken as measured, from the
first request to the last, the slow end of the pilot included.

What all n attempts would cost is reckoned from the tokens per attempt of each problem. Pure; nothing is sampled here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Piloted:
    """One problem of the pilot: attempts up to its stop, and their tokens.

    Example: ``Piloted(9, 21_400)``
    """

    attempts: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """An expected number with its 95 % interval."""

    mean: float
    low: float
    high: float

    def times(self, factor: float) -> Estimate:
        """The same in another unit."""
        return Estimate(self.mean * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one stage. ``hours`` are those of all devices together, None where no speed is known; so is ``price``."""

    attempts: Estimate
    tokens: Estimate
    hours: Estimate | None
    price: Estimate | None


@dataclass(frozen=True, slots=True)
class StagePlan:
    """What a stage is expected to cost as set, and with all attempts made."""

    stage: str
    policy: str
    problems: int
    pilot: int
    tokens_per_s: float | None
    expected: Cost
    uncurtailed: Cost

    def row(self) -> dict[str, Any]:
        """The plan as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Rates:
    """What turns tokens into hours and money: tokens per second of all devices, their number, a price per million."""

    tokens_per_s: float | None = None
    devices: int = 1
    price_per_million: float | None = None


def plan_stage(
    stage: str, policy: str, problems: int, attempts: int, pilot: Sequence[Piloted], rates: Rates, seed: int = 0
) -> StagePlan:
    """The plan of one stage.

    Args:
        problems: how many the stage will sample, the pilot's among them.
        attempts: n of its band.
        pilot: at least one problem.
    """
    made = _estimate(pilot, lambda one: float(one.attempts), problems, seed)
    spent = _estimate(pilot, lambda one: float(one.tokens), problems, seed)
    whole = _estimate(pilot, lambda one: attempts * one.tokens / max(1, one.attempts), problems, seed)
    every = float(problems * attempts)
    return StagePlan(
        stage,
        policy,
        problems,
        len(pilot),
        rates.tokens_per_s,
        _cost(made, spent, rates),
        _cost(Estimate(every, every, every), whole, rates),
    )


def _cost(attempts: Estimate, tokens: Estimate, rates: Rates) -> Cost:
    speed, price = rates.tokens_per_s, rates.price_per_million
    hours = tokens.times(rates.devices / speed / 3600) if speed else None
    return Cost(attempts, tokens, hours, tokens.times(price / 1e6) if price is not None else None)


def _estimate(pilot: Sequence[Piloted], value: Callable[[Piloted], float], problems: int, seed: int) -> Estimate:
    values = [value(one) for one in pilot]
    draw = random.Random(seed)
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(RESAMPLES))
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]
    return Estimate(sum(values) / len(values), low, high).times(problems)


def read_plan(row: Mapping[str, Any]) -> StagePlan:
    """A plan from its JSON object."""

    def estimate(found: Mapping[str, float] | None) -> Estimate | None:
        return Estimate(**found) if found is not None else None

    def cost(found: Mapping[str, Any]) -> Cost:
        made, spent = Estimate(**found["attempts"]), Estimate(**found["tokens"])
        return Cost(made, spent, estimate(found["hours"]), estimate(found["price"]))

    return StagePlan(**{**row, "expected": cost(row["expected"]), "uncurtailed": cost(row["uncurtailed"])})
