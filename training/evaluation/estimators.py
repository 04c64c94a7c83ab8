"""Estimate pass@k (arXiv 2107.03374), maj@k, means and paired differences, with intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

NORMAL = 1.96
"""97.5 % point of the normal distribution."""

STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""97.5 % points of Student's t, from 1 degree of freedom."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean of ``count`` values with its 95 % interval, NaN if the values give none."""

    mean: float
    low: float
    high: float
    count: int

    @property
    def excludes_zero(self) -> bool:
        """Return whether the interval is on one side of 0."""
        return self.low > 0 or self.high < 0


def student(degrees: int) -> float:
    """Return the 97.5 % point of Student's t."""
    return STUDENT[degrees - 1] if degrees <= len(STUDENT) else NORMAL


def mean_interval(values: Sequence[float], lowest: float = -math.inf, highest: float = math.inf) -> Estimate:
    """Return the mean with a 95 % interval by Student's t.

    If all values are ``lowest`` or ``highest``, it is exact (0 of n: 1 - .025^(1/n)); else equal values have none.
    """
    if not values:
        return Estimate(math.nan, math.nan, math.nan, 0)
    mean, count = statistics.fmean(values), len(values)
    if count > 1 and set(values) in ({lowest}, {highest}):  # other values may be this frequent
        unseen = (highest - lowest) * (1 - 0.025 ** (1 / count))
        return Estimate(mean, max(mean - unseen, lowest), min(mean + unseen, highest), count)
    variance = statistics.variance(values) / count if count > 1 else 0.0
    return _with_reach(mean, variance, count - 1, count, lowest, highest)


def _with_reach(mean: float, variance: float, degrees: int, count: int, lowest: float, highest: float) -> Estimate:
    """Return a mean with its interval within the bounds; none without variance."""
    if not variance:
        return Estimate(mean, math.nan, math.nan, count)
    reach = student(degrees) * math.sqrt(variance)
    return Estimate(mean, max(mean - reach, lowest), min(mean + reach, highest), count)


def crossed_interval(differences: Sequence[Sequence[float]]) -> Estimate:
    """Return the mean of paired differences with a 95 % interval over seeds and problems.

    Clusters go both ways (Cameron, Gelbach and Miller 2011); with one seed, over problems alone.

    Args:
        differences: [seeds][problems].
    """
    if not differences or not differences[0]:
        return Estimate(math.nan, math.nan, math.nan, 0)
    seeds, problems = len(differences), len(differences[0])
    if any(len(row) != problems for row in differences):
        raise ValueError("every seed needs a difference for every problem")
    if seeds == 1:
        return mean_interval(differences[0], -1.0, 1.0)
    by_seed = [statistics.fmean(row) for row in differences]
    mean = statistics.fmean(by_seed)
    variance = over_seeds = statistics.variance(by_seed) / seeds
    degrees = seeds - 1
    if problems > 1:
        by_problem = [statistics.fmean(column) for column in zip(*differences, strict=True)]
        over_problems = statistics.variance(by_problem) / problems
        single = statistics.variance([value for row in differences for value in row]) / (seeds * problems)
        variance = max(over_seeds + over_problems - single, over_seeds, over_problems)
        degrees = min(seeds, problems) - 1
    return _with_reach(mean, variance, degrees, seeds * problems, -1.0, 1.0)


def pass_at_k(attempts: int, correct: int, k: int) -> float:
    """Return the chance that one of k drawn attempts is correct: 1 - C(n-c, k) / C(n, k)."""
    _require(attempts, k)
    return correct / attempts if k == 1 else 1.0 - math.comb(attempts - correct, k) / math.comb(attempts, k)


def majority_at_k(attempts: int, votes: int, rivals: Sequence[int], k: int) -> float:
    """Return the chance that the plurality of k drawn attempts is right; ties are split."""
    _require(attempts, k)
    silent = attempts - votes - sum(rivals)
    if silent < 0:
        raise ValueError(f"{votes + sum(rivals)} votes of {attempts} attempts")
    won = 0.0
    for drawn in range(1, min(votes, k) + 1):
        ways = _ways_below(rivals, drawn, k - drawn)
        share = sum(
            count * math.comb(silent, k - drawn - size) / (1 + ties)
            for (size, ties), count in ways.items()
            if k - drawn - size <= silent
        )
        won += math.comb(votes, drawn) * share
    return won / math.comb(attempts, k)


def _ways_below(rivals: Sequence[int], limit: int, room: int) -> dict[tuple[int, int], int]:
    """Count ways to draw up to ``room`` votes, by (drawn, classes with ``limit`` votes)."""
    ways = {(0, 0): 1}
    for votes in rivals:
        more: dict[tuple[int, int], int] = {}
        for (size, ties), count in ways.items():
            for drawn in range(min(votes, limit, room - size) + 1):
                key = size + drawn, ties + (drawn == limit)
                more[key] = more.get(key, 0) + count * math.comb(votes, drawn)
        ways = more
    return ways


def _require(attempts: int, k: int) -> None:
    if not 1 <= k <= attempts:
        raise ValueError(f"k = {k} of {attempts} attempts; k must be between 1 and the number of attempts")
