"""Where each problem stands by its present pass rate: active, deferred (too hard for now) or retired (too easy by now).

The pass rate comes for free from the rollouts that training makes anyway, weighted by age: a rollout made ``a`` steps
ago weighs ``0.5 ** (a / half_life)``. With correct weight c and wrong weight w the pass rate has the posterior
Beta(1 + c, 1 + w) (uniform prior), and a problem changes its pool only where that posterior puts at least
``confidence`` of its mass on the other side of the band. That is the hysteresis: what is uncertain stays where it is,
and `uncertain_problems` names it, so that only those problems are worth sampling again.

No pool is a dead end: `training.rollouts.curriculum.drawing` probes the retired and retries the deferred at a low rate,
and their new rollouts move them back by the same rule. A disputed label (`disputed_labels`) waits for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from training.rollouts.curriculum.settings import PoolSettings


class Pool(StrEnum):
    """Where a problem stands by its pass rate."""

    ACTIVE = "active"
    DEFERRED = "deferred"
    RETIRED = "retired"
    DISPUTED = "disputed"  # its label seems wrong: it is not drawn, whatever its pass rate


@dataclass(frozen=True, slots=True)
class PassCounts:
    """Rollouts at one problem at one step: ``correct`` of ``judged``. Rollouts the verifier failed on are not here.

    Example: ``PassCounts(step=120, correct=3, judged=16)``
    """

    step: int
    correct: int
    judged: int


@dataclass(frozen=True, slots=True)
class PassRateEstimate:
    """A problem's present pass rate: weights of correct and of wrong rollouts, and the posterior's mean and tails.

    Example: ``PassRateEstimate(correct=2.5, wrong=9.5, pass_rate=0.25, below_band=0.01, above_band=0.0)``
    """

    correct: float
    wrong: float
    pass_rate: float
    below_band: float
    above_band: float

    @property
    def effective_rollouts(self) -> float:
        """Return how many rollouts the estimate rests on, counting old ones less."""
        return self.correct + self.wrong


@dataclass(frozen=True, slots=True)
class PoolChange:
    """A problem that changes its pool, and why."""

    problem: str
    old: Pool
    new: Pool
    reason: str


def weigh_counts(pass_counts: Iterable[PassCounts], now: int, settings: PoolSettings) -> tuple[float, float]:
    """Return the weights of correct and of wrong rollouts at step ``now``."""
    correct = wrong = 0.0
    for counts in pass_counts:
        weight = 0.5 ** (max(0, now - counts.step) / settings.half_life)
        correct += weight * counts.correct
        wrong += weight * (counts.judged - counts.correct)
    return correct, wrong


def estimate_pass_rate(pass_counts: Iterable[PassCounts], now: int, settings: PoolSettings) -> PassRateEstimate:
    """Estimate the pass rate at step ``now``; ``pass_rate`` is the posterior's mean."""
    correct, wrong = weigh_counts(pass_counts, now, settings)
    a, b = 1 + correct, 1 + wrong
    below = beta_cdf(settings.min_pass_rate, a, b)
    above = 1 - beta_cdf(settings.max_pass_rate, a, b)
    return PassRateEstimate(correct, wrong, a / (a + b), below, above)


def pool_change(problem: str, pool: Pool, now: PassRateEstimate, settings: PoolSettings) -> PoolChange | None:
    """Return the pool that the problem moves to, with the reason, or None where it stays."""
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
    """Return problems of which no pool has ``confidence``, the least sure first: they are worth a few more rollouts."""

    def certainty(estimate: PassRateEstimate) -> float:
        return max(estimate.below_band, estimate.above_band, 1 - estimate.below_band - estimate.above_band)

    return sorted(
        (problem for problem, estimate in estimates.items() if certainty(estimate) < settings.confidence),
        key=lambda problem: certainty(estimates[problem]),
    )


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the probability that a Beta(a, b) variable is at most x."""
    import mpmath

    return float(mpmath.betainc(a, b, 0, x, regularized=True))
