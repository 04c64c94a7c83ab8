"""What an anchor corrects in a policy's expected pass rates: their level, their spread, and how sure they are.

An item response model gives each problem a Beta prior of the policy's pass rate (`curation.difficulty.priors`). Its one
ability and one concentration are a compromise between all policies. The anchor's own attempts tell what they come to
for this one: the logit of every prior's mean becomes ``shift + slope * logit``, its size is multiplied by ``size``. The
three are the likeliest ones for the anchor's beta-binomial counts, held to "nothing to correct" by normal priors
(shift: sd 0.5, logarithm of the slope: 0.3, logarithm of the size: 0.7). Where others' attempts tell nothing of this
policy, slope and size fall, so that little is concluded from them; the model need not be refused.

Pure functions over frames. The counts may end by any rule that looks at them alone: it cancels from the likelihood.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from curation.difficulty.observations import Array
from curation.difficulty.priors import PRIOR, rounded

_SHIFT_SD, _SLOPE_SD, _SIZE_SD = 0.5, 0.3, 0.7
_MOST_SD = 4.0
"""Corrections are searched within so many standard deviations."""

_ROUNDS, _TOLERANCE, _STEP = 30, 1e-4, 1e-3
_MOST_LOGIT = 12.0
_LEAST_SIZE, _MOST_SIZE = 0.05, 400.0


@dataclass(frozen=True, slots=True)
class Recalibration:
    """A correction of priors.

    Args:
        shift, slope: the logit of a mean m becomes shift + slope * logit(m).
        size: factor of the priors' sizes; below 1 they were too sure.

    Example: ``Recalibration(-0.2, 0.9, 0.6)``
    """

    shift: float = 0.0
    slope: float = 1.0
    size: float = 1.0

    def applied(self, priors: pl.DataFrame) -> pl.DataFrame:
        """Return `PRIOR` rows, corrected; error rates and agreement as they were."""
        mean, size = _means_and_sizes(priors)
        corrected, sizes = self._of(np.log(mean / (1 - mean)), size)
        correct, other = rounded(corrected, sizes)
        columns = (pl.Series("correct", correct), pl.Series("other", other))
        return priors.with_columns(*columns).select(PRIOR.names()).cast(PRIOR)

    @property
    def sentence(self) -> str:
        """Return the correction in words."""
        return (
            f"anchor: expected pass rates are moved by {self.shift:+.2f} logits, spread by {self.slope:.2f} and held "
            f"{self.size:.2f} times as firmly"
        )

    def _of(self, logit: Array, size: Array) -> tuple[Array, Array]:
        moved = np.clip(self.shift + self.slope * logit, -_MOST_LOGIT, _MOST_LOGIT)
        return 1 / (1 + np.exp(-moved)), np.clip(self.size * size, _LEAST_SIZE, _MOST_SIZE)


def recalibrate(priors: pl.DataFrame, counts: pl.DataFrame) -> Recalibration:
    """Return the correction that the anchor's attempts speak for.

    Args:
        priors: `PRIOR` rows of the anchor's problems, which do not look at these attempts.
        counts: problem, correct and judged of the policy; problems without a prior or an attempt tell nothing.
    """
    seen = priors.join(counts.select("problem", seen="correct", made="judged"), on="problem").filter(pl.col("made") > 0)
    if not seen.height:
        return Recalibration()
    mean, size = _means_and_sizes(seen)
    logit = np.log(mean / (1 - mean))
    correct: Array = seen["seen"].to_numpy().astype(np.float64)
    judged: Array = seen["made"].to_numpy().astype(np.float64)

    def value(at: Array) -> float:
        means, sizes = _as_recalibration(at)._of(logit, size)
        likelihood = (
            _log_rising(means * sizes, correct)
            + _log_rising((1 - means) * sizes, judged - correct)
            - _log_rising(sizes, judged)
        )
        return float(likelihood.sum() - 0.5 * (at**2).sum())

    return _as_recalibration(_highest(value))


def _as_recalibration(at: Array) -> Recalibration:
    """Return the correction at [3] standard deviations."""
    return Recalibration(float(at[0] * _SHIFT_SD), float(np.exp(at[1] * _SLOPE_SD)), float(np.exp(at[2] * _SIZE_SD)))


def _means_and_sizes(priors: pl.DataFrame) -> tuple[Array, Array]:
    correct, other = priors["correct"].to_numpy(), priors["other"].to_numpy()
    return correct / (correct + other), correct + other


def _log_rising(start: Array, most: Array) -> Array:
    """Return [rows] ``log(start (start + 1) … (start + most - 1))``."""
    steps = np.arange(int(most.max(initial=0)))
    total: Array = np.where(steps < most[:, None], np.log(start[:, None] + steps), 0.0).sum(axis=1)
    return total


def _highest(value: Callable[[Array], float]) -> Array:
    """Return [3] where a function with one peak is highest: one axis at a time, in halving steps either way."""
    at, step = np.zeros(3), 1.0
    best = value(at)
    for _ in range(_ROUNDS):
        before = best
        for axis in range(3):
            for way in (step, -step):
                tried = at.copy()
                tried[axis] = np.clip(tried[axis] + way, -_MOST_SD, _MOST_SD)
                found = value(tried)
                while found > best:
                    at, best = tried, found
                    tried = at.copy()
                    tried[axis] = np.clip(tried[axis] + way, -_MOST_SD, _MOST_SD)
                    found = value(tried)
        if best - before < _TOLERANCE:
            if step < _STEP:
                break
            step /= 4
    return at
