"""Sort problems by their pass rate: active, deferred (too hard) or retired (too easy).

A rollout made ``a`` steps ago weighs ``0.5 ** (a / HALF_LIFE)``. With correct weight c and wrong weight w the posterior
is Beta(1 + c, 1 + w); a problem enters a pool that holds at least `CONFIDENCE` of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

BAND = (0.05, 0.875)
"""Pass rates between which a problem is active: below it is deferred, above it retired."""

CONFIDENCE = 0.8
"""Probability that a pass rate is outside the band before its problem leaves the active pool, and inside before it
comes back."""

HALF_LIFE = 50.0
"""Training steps after which a rollout counts half."""

MIN_EFFECTIVE_ROLLOUTS = 4.0
"""Weighted rollouts below which a problem stays in its pool."""


class Pool(StrEnum):
    """The pool of a problem, by its pass rate."""

    ACTIVE = "active"
    DEFERRED = "deferred"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class PassCounts:
    """Judged and correct rollouts of a problem at one step."""

    step: int
    correct: int
    judged: int


@dataclass(frozen=True, slots=True)
class PassRateEstimate:
    """Weights of correct and wrong rollouts, and the posterior's mean and tails."""

    correct: float
    wrong: float
    pass_rate: float
    below_band: float
    above_band: float

    @property
    def effective_rollouts(self) -> float:
        """Return the number of rollouts, weighted by age."""
        return self.correct + self.wrong


@dataclass(frozen=True, slots=True)
class PoolChange:
    """A problem's change of pool, and why."""

    problem: str
    old: Pool
    new: Pool
    reason: str


def weigh_counts(pass_counts: Iterable[PassCounts], now: int) -> tuple[float, float]:
    """Return the weights of correct and of wrong rollouts."""
    correct = wrong = 0.0
    for counts in pass_counts:
        weight = 0.5 ** (max(0, now - counts.step) / HALF_LIFE)
        correct += weight * counts.correct
        wrong += weight * (counts.judged - counts.correct)
    return correct, wrong


def estimate_pass_rate(pass_counts: Iterable[PassCounts], now: int) -> PassRateEstimate:
    """Estimate the pass rate at step ``now``."""
    correct, wrong = weigh_counts(pass_counts, now)
    a, b = 1 + correct, 1 + wrong
    below = beta_cdf(BAND[0], a, b)
    above = 1 - beta_cdf(BAND[1], a, b)
    return PassRateEstimate(correct, wrong, a / (a + b), below, above)


def pool_change(problem: str, pool: Pool, now: PassRateEstimate) -> PoolChange | None:
    """Return the problem's new pool and why, or None."""
    if now.effective_rollouts < MIN_EFFECTIVE_ROLLOUTS:
        return None
    inside = 1 - now.below_band - now.above_band
    sides = ((now.above_band, Pool.RETIRED), (now.below_band, Pool.DEFERRED), (inside, Pool.ACTIVE))
    for mass, new in sides:
        if new is not pool and mass >= CONFIDENCE:
            counted = f"pass rate {now.pass_rate:.2f} on {now.effective_rollouts:.1f} attempts"
            numbers = f"{counted}, {mass:.0%} sure that it is {new}"
            return PoolChange(problem, pool, new, numbers)
    return None


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return P(X <= x) of a Beta(a, b) variable."""
    import mpmath

    return float(mpmath.betainc(a, b, 0, x, regularized=True))
