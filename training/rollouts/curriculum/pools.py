"""Where each problem stands by its present pass rate: active, deferred (too hard for now) or retired (too easy by now).

The pass rate comes for free from the attempts that training makes anyway, weighted by age: an attempt made ``a`` steps
ago weighs ``0.5 ** (a / half_life)``. With correct weight c and wrong weight w the pass rate has the posterior
Beta(1 + c, 1 + w) (uniform prior), and a problem changes its pool only where that posterior puts at least
``confidence`` of its mass on the other side of the band. That is the hysteresis: what is uncertain stays where it is,
and `uncertain_problems` names it, so that only those problems are worth sampling again.

No pool is a dead end: `training.rollouts.curriculum.drawing` probes the retired and retries the deferred at a low rate,
and their new attempts move them back by the same rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from training.rollouts.curriculum.settings import PoolSettings


class Pool(StrEnum):
    """Where a problem stands."""

    ACTIVE = "active"
    DEFERRED = "deferred"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class PassCounts:
    """Attempts at one problem at one step: ``correct`` of ``judged``. Attempts the verifier failed on are not here.

    Example: ``Seen(step=120, correct=3, judged=16)``
    """

    step: int
    correct: int
    judged: int


@dataclass(frozen=True, slots=True)
class PassRateEstimate:
    """A problem's present pass rate: weights of correct and of other attempts, and what the posterior says.

    Example: ``Estimate(correct=2.5, wrong=9.5, rate=0.25, below=0.01, above=0.0)``
    """

    correct: float
    wrong: float
    pass_rate: float
    below_band: float
    above_band: float

    @property
    def effective_rollouts(self) -> float:
        """Return how many attempts it rests on, counting old ones less."""
        return self.correct + self.wrong


@dataclass(frozen=True, slots=True)
class PoolChange:
    """A problem that changes its pool, and why."""

    problem: str
    old: Pool
    new: Pool
    reason: str


def estimate_pass_rate(seen: Iterable[PassCounts], now: int, settings: PoolSettings) -> PassRateEstimate:
    """Return the pass rate at step ``now``; ``rate`` is the posterior's mean."""
    correct = wrong = 0.0
    for one in seen:
        weight = 0.5 ** (max(0, now - one.step) / settings.half_life)
        correct += weight * one.correct
        wrong += weight * (one.judged - one.correct)
    a, b = 1 + correct, 1 + wrong
    below = beta_cdf(settings.min_pass_rate, a, b)
    above = 1 - beta_cdf(settings.max_pass_rate, a, b)
    return PassRateEstimate(correct, wrong, a / (a + b), below, above)


def pool_change(problem: str, pool: Pool, now: PassRateEstimate, settings: PoolSettings) -> PoolChange | None:
    """Return where the problem goes, or None where it stays."""
    if now.effective_rollouts < settings.min_effective_rollouts:
        return None
    inside = 1 - now.below_band - now.above_band
    sides = ((now.above_band, Pool.RETIRED), (now.below_band, Pool.DEFERRED), (inside, Pool.ACTIVE))
    for mass, new in sides:
        if new is not pool and mass >= settings.confidence:
            counted = f"pass rate {now.pass_rate:.2f} on {now.effective_rollouts:.1f} attempts"
            numbers = f"{counted}, {mass:.0%} sure that it is {new}"
            return PoolChange(problem, pool, new, numbers)
    return None


def uncertain_problems(estimates: Mapping[str, PassRateEstimate], settings: PoolSettings) -> list[str]:
    """Return problems of which no pool has ``confidence``: those worth a few more attempts, the least sure first."""

    def sure(one: PassRateEstimate) -> float:
        return max(one.below_band, one.above_band, 1 - one.below_band - one.above_band)

    return sorted(
        (p for p, one in estimates.items() if sure(one) < settings.confidence), key=lambda p: sure(estimates[p])
    )


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return probability that a Beta(a, b) variable is at most x."""
    import mpmath

    return float(mpmath.betainc(a, b, 0, x, regularized=True))
