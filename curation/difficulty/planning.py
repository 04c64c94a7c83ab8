"""What a stage of sampling will cost, from a pilot of some of its problems: attempts, tokens, hours and a price.

Per problem the pilot gives the attempts until its stop and their tokens. Means are scaled to the stage's problems.
Where a model of all attempts tells how many attempts each problem will take (`ForeseenSampling`), they are scaled by
that: what the pilot's problems took, of what was expected of them, times what is expected of all others (a ratio
estimate: Cochran, Sampling Techniques, 1977, chapter 6). So a model that errs makes the plan less sure, not wrong. The
interval is the 2.5 and 97.5 % quantiles of a bootstrap over the pilot's problems (Efron 1979), seeds fixed. It says
how sure the mean is given the pilot, not how steady the engine's speed will be: that is taken as measured, from the
first request to the last, the slow end of the pilot included.

A price counts the prompt of each attempt too, at the mean length that the pilot's servers report.

What all n attempts would cost is reckoned from the tokens per attempt of each problem. Pure; nothing is sampled here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class PilotProblem:
    """One problem of the pilot: attempts up to its stop, and their tokens.

    Example: ``PilotProblem(9, 21_400)``
    """

    attempts: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ForeseenSampling:
    """How a stage will stop by what is known of its problems.

    Args:
        anchor: problems that are sampled until no outcome could change their decision, as all of the pilot were.
        stopped: the pilot's problems as if each had been stopped by what others tell of it.
        expected: attempts that were expected of each of these, ``total`` of all problems outside the anchor together.
        sentence: what the model saves, or why it is not used.
    """

    anchor: int
    stopped: tuple[PilotProblem, ...]
    expected: tuple[float, ...]
    total: float
    sentence: str


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """An expected number with its 95 % interval."""

    mean: float
    low: float
    high: float

    def scaled(self, factor: float) -> CostEstimate:
        """Return the estimate in another unit, or of ``factor`` times as much."""
        return CostEstimate(self.mean * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one stage. ``hours`` are those of all devices together, None where no speed is known; so is ``price``."""

    attempts: CostEstimate
    tokens: CostEstimate
    hours: CostEstimate | None
    price: CostEstimate | None

    def scaled(self, factor: float) -> Cost:
        """Return the cost of ``factor`` times as many attempts."""
        hours = self.hours.scaled(factor) if self.hours is not None else None
        price = self.price.scaled(factor) if self.price is not None else None
        return Cost(self.attempts.scaled(factor), self.tokens.scaled(factor), hours, price)


@dataclass(frozen=True, slots=True)
class StagePlan:
    """What a stage is expected to cost as set, and with all attempts made."""

    stage: str
    policy: str
    problems: int
    pilot: int
    tokens_per_s: float | None
    expected: Cost
    without_early_stopping: Cost
    prompt_tokens: float | None = None  # mean of the pilot's prompts, where servers tell
    foreseen: str | None = None  # what a model of all attempts adds, in words

    def row(self) -> dict[str, Any]:
        """Return the plan as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class CostRates:
    """What turns tokens into hours and money: tokens per second of all devices, their number, prices of a million.

    ``prompt_tokens`` is the mean length of a prompt. A cost is known where one of both prices is stated; what is not
    stated costs nothing, and neither do prompts of unknown length.
    """

    tokens_per_s: float | None = None
    devices: int = 1
    price_out: float | None = None
    price_in: float | None = None
    prompt_tokens: float | None = None

    def price(self, attempts: float, tokens: float) -> float:
        """Return the price of so many attempts with so many generated tokens in all."""
        prompts = attempts * (self.prompt_tokens or 0.0)
        return (tokens * (self.price_out or 0.0) + prompts * (self.price_in or 0.0)) / 1e6

    @property
    def priced(self) -> bool:
        """Return whether a price is stated."""
        return self.price_out is not None or self.price_in is not None


def plan_stage(
    stage: str,
    policy: str,
    problems: int,
    attempts: int,
    pilot: Sequence[PilotProblem],
    rates: CostRates,
    seed: int = 0,
    foreseen: ForeseenSampling | None = None,
) -> StagePlan:
    """Return the plan of one stage.

    Args:
        problems: how many the stage will sample, the pilot's among them.
        attempts: n of its band.
        pilot: at least one problem.
        foreseen: of the same problems in the same order, where the stage stops by a model of all attempts.
    """
    without_stopping = [
        PilotProblem(attempts, round(attempts * problem.tokens / max(1, problem.attempts))) for problem in pilot
    ]
    return StagePlan(
        stage,
        policy,
        problems,
        len(pilot),
        rates.tokens_per_s,
        _cost(pilot, problems, rates, seed, foreseen),
        _cost(without_stopping, problems, rates, seed),
        rates.prompt_tokens,
        foreseen.sentence if foreseen is not None else None,
    )


def _cost(
    pilot: Sequence[PilotProblem],
    problems: int,
    rates: CostRates,
    seed: int,
    foreseen: ForeseenSampling | None = None,
) -> Cost:
    def estimate(value: Callable[[PilotProblem], float]) -> CostEstimate:
        if foreseen is None:
            return _estimate(pilot, value, problems, seed)
        return _foreseen_estimate(pilot, value, foreseen, seed)

    tokens = estimate(lambda problem: float(problem.tokens))
    hours = tokens.scaled(rates.devices / rates.tokens_per_s / 3600) if rates.tokens_per_s else None
    price = estimate(lambda problem: rates.price(problem.attempts, problem.tokens)) if rates.priced else None
    return Cost(estimate(lambda problem: float(problem.attempts)), tokens, hours, price)


def _estimate(
    pilot: Sequence[PilotProblem], value: Callable[[PilotProblem], float], problems: int, seed: int
) -> CostEstimate:
    values = [value(problem) for problem in pilot]
    rng = random.Random(seed)
    means = sorted(sum(rng.choices(values, k=len(values))) / len(values) for _ in range(RESAMPLES))
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]
    return CostEstimate(sum(values) / len(values), low, high).scaled(problems)


def _foreseen_estimate(
    pilot: Sequence[PilotProblem], value: Callable[[PilotProblem], float], foreseen: ForeseenSampling, seed: int
) -> CostEstimate:
    """Return the anchor's problems by the pilot's mean, and the others by the ratio to what was expected of them."""
    rows = [
        (value(full), value(stopped), expected)
        for full, stopped, expected in zip(pilot, foreseen.stopped, foreseen.expected, strict=True)
    ]

    def total(drawn: Sequence[tuple[float, float, float]]) -> float:
        full, stopped, expected = (sum(column) for column in zip(*drawn, strict=True))
        return float(foreseen.anchor * full / len(drawn) + foreseen.total * stopped / expected)

    rng = random.Random(seed)
    totals = sorted(total(rng.choices(rows, k=len(rows))) for _ in range(RESAMPLES))
    return CostEstimate(total(rows), totals[int(0.025 * RESAMPLES)], totals[int(0.975 * RESAMPLES) - 1])


def read_plan(row: Mapping[str, Any]) -> StagePlan:
    """Return a plan from its JSON object."""

    def estimate(fields: Mapping[str, float] | None) -> CostEstimate | None:
        return CostEstimate(**fields) if fields is not None else None

    def cost(fields: Mapping[str, Any]) -> Cost:
        attempts, tokens = CostEstimate(**fields["attempts"]), CostEstimate(**fields["tokens"])
        return Cost(attempts, tokens, estimate(fields["hours"]), estimate(fields["price"]))

    return StagePlan(
        **{**row, "expected": cost(row["expected"]), "without_early_stopping": cost(row["without_early_stopping"])}
    )
