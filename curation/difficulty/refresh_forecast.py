"""Forecasts a refresh's decisions, and finds the largest threshold that loses few enough.

The anchor's attempts correct all priors and check the threshold. Pure functions over frames.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from curation.difficulty.early_stopping import AttemptOutcome, Prior, ProblemPrior, StoppingRule
from curation.difficulty.item_response import Array, ItemResponseModel, fit
from curation.difficulty.priors import (
    PRIOR,
    SIDES,
    Calibration,
    Replay,
    agreement_prior,
    as_priors,
    beta_sides,
    calibration,
    problem_priors,
    replay,
    rounded,
)
from curation.difficulty.refresh import expected_side
from curation.records import DropReason

FEW = 2_000
"""Anchor problems that are enough; below, more problems are drawn."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """The anchor's results; ``before`` judged the set, ``shift`` is in logits."""

    policy: str
    before: str
    problems: int
    shift: float | None
    calibration: Calibration
    model: ItemResponseModel
    counts: pl.DataFrame


def anchored(counts: pl.DataFrame, policy: str, before: str) -> Anchor | None:
    """Return the anchor's results, or None if nothing was judged.

    Args:
        counts: of all policies; with `FEW` anchor problems, only those.
    """
    own = counts.filter((pl.col("policy") == policy) & (pl.col("judged") > 0))
    if not own.height:
        return None
    model = fit(counts, always=own["problem"])
    abilities = model.abilities
    shift = abilities[policy] - abilities[before] if before in abilities else None
    return Anchor(policy, before, own.height, shift, calibration(model, counts, policy), model, counts)


def anchor_lines(anchor: Anchor | None) -> list[str]:
    """Describe the anchor's results."""
    if anchor is None:
        return []
    shift = f"{anchor.shift:+.2f} logits against {anchor.before}" if anchor.shift is not None else "of unknown strength"
    lines = [f"anchor: {anchor.problems:,} problems judged by {anchor.policy}: {shift}"]
    if not anchor.calibration.holds:
        refused = anchor.calibration.worst_tenth(anchor.policy)
        lines.append(f"anchor: {refused}, so little is concluded from others")
    return lines


_SHIFT_SD, _SLOPE_SD, _SIZE_SD = 0.5, 0.3, 0.7
_MAX_SD = 4.0

_ROUNDS, _TOLERANCE, _STEP = 30, 1e-4, 1e-3
_MAX_LOGIT = 12.0
_MIN_SIZE, _MAX_SIZE = 0.05, 400.0


@dataclass(frozen=True, slots=True)
class Recalibration:
    """Correction of priors: logit(m) becomes shift + slope * logit(m), sizes are multiplied by ``size``."""

    shift: float = 0.0
    slope: float = 1.0
    size: float = 1.0

    def applied(self, priors: pl.DataFrame) -> pl.DataFrame:
        """Return corrected `PRIOR` rows with the same error rates and agreement."""
        mean, size = _means_and_sizes(priors)
        corrected, sizes = self._of(np.log(mean / (1 - mean)), size)
        correct, other = rounded(corrected, sizes)
        columns = (pl.Series("correct", correct), pl.Series("other", other))
        return priors.with_columns(*columns).select(PRIOR.names()).cast(PRIOR)

    @property
    def sentence(self) -> str:
        """Return the correction in words."""
        return (
            f"anchor: expected pass rates are moved by {self.shift:+.2f} logits and spread by {self.slope:.2f}, prior "
            f"precision ×{self.size:.2f}"
        )

    def _of(self, logit: Array, size: Array) -> tuple[Array, Array]:
        moved = np.clip(self.shift + self.slope * logit, -_MAX_LOGIT, _MAX_LOGIT)
        return 1 / (1 + np.exp(-moved)), np.clip(self.size * size, _MIN_SIZE, _MAX_SIZE)


def recalibrate(priors: pl.DataFrame, counts: pl.DataFrame) -> Recalibration:
    """Return the likeliest correction under normal priors.

    Args:
        priors: the anchor's `PRIOR` rows, made without these attempts.
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


def _log_rising(start: Array, counts: Array) -> Array:
    """Return [rows] ``log(start (start + 1) … (start + count - 1))``."""
    steps = np.arange(int(counts.max(initial=0)))
    total: Array = np.where(steps < counts[:, None], np.log(start[:, None] + steps), 0.0).sum(axis=1)
    return total


def _highest(value: Callable[[Array], float]) -> Array:
    at, step = np.zeros(3), 1.0
    best = value(at)
    for _ in range(_ROUNDS):
        before = best
        for axis in range(3):
            for change in (step, -step):
                tried = at.copy()
                tried[axis] = np.clip(tried[axis] + change, -_MAX_SD, _MAX_SD)
                value_there = value(tried)
                while value_there > best:
                    at, best = tried, value_there
                    tried = at.copy()
                    tried[axis] = np.clip(tried[axis] + change, -_MAX_SD, _MAX_SD)
                    value_there = value(tried)
        if best - before < _TOLERANCE:
            if step < _STEP:
                break
            step /= 4
    return at


THRESHOLDS = tuple(float(value) for value in np.round(np.arange(0.005, 0.3001, 0.005), 3))
"""Thresholds to try, ascending."""


_SHARED = ("correct", "other", "agree", "differ")
"""Columns of `PRIOR` that make a prior."""

_SIDES = tuple(SIDES.names()[1:])


@dataclass(frozen=True, slots=True)
class ForecastPart:
    """A chunk's last `DECISION` rows and all policies' counts."""

    decisions: pl.DataFrame
    counts: pl.DataFrame


@dataclass(frozen=True, slots=True)
class RefreshForecast:
    """A refresh's threshold and expected outcome.

    Args:
        tables: each chunk's `PRIOR` and `SIDES` columns, in order.
        lost: share of decisions that a full judgement would change.
        share: share of its attempts, including the anchor's.
    """

    anchor: Anchor
    threshold: float
    tables: tuple[pl.DataFrame, ...]
    lost: float
    share: float
    replay: Replay
    correction: Recalibration

    def sides_of(self, part: int) -> pl.DataFrame:
        """Return the `SIDES` rows of a chunk."""
        return self.tables[part].select(SIDES.names())

    def priors_of(self, part: int) -> pl.DataFrame:
        """Return the `PRIOR` rows of a chunk, which stop at the threshold."""
        return self.tables[part].with_columns(error_rate=pl.lit(self.threshold)).select(PRIOR.names())

    @property
    def sentence(self) -> str:
        """Describe the expected outcome."""
        if not self.replay.holds:
            return (
                f"anchor: stopping at {self.threshold:g} would have decided {self.replay.lost} of its "
                f"{self.replay.problems} problems otherwise, so attempts are made until they decide by themselves"
            )
        return (
            f"anchor: {100 * self.lost:.1f} % of the decisions are expected to differ from a full judgement's, for "
            f"{100 * self.share:.0f} % of its attempts"
        )


def foresee_refresh(
    anchor: Anchor,
    parts: Iterable[ForecastPart],
    attempts: Mapping[str, Sequence[AttemptOutcome]],
    rule: StoppingRule,
    error_rate: float,
) -> RefreshForecast:
    """Return a refresh's threshold and expected outcome.

    Args:
        parts: all problems; iterated twice.
        attempts: of the anchor, in order, up to their stops.
        error_rate: max share of lost decisions.
    """
    rates = pl.concat([part.decisions.select("correct", "judged", "top_wrong_votes") for part in parts])
    agreement = agreement_prior(rates.filter(pl.col("judged") > 0))
    own = anchor.counts.filter(pl.col("policy") == anchor.policy)
    names = own["problem"].unique()
    correction = recalibrate(problem_priors(anchor.model, anchor.counts, anchor.policy, names, agreement, 0.0), own)
    tables = []
    for part in parts:
        names, reasons = part.decisions["problem"], part.decisions["reason"]
        table = problem_priors(anchor.model, part.counts, anchor.policy, names, agreement, 0.0)
        where = pl.Series("where", [expected_side(reason) for reason in reasons], pl.Int8)
        is_decided = reasons.ne_missing(DropReason.RESERVED.value).alias("is_decided")
        is_anchor = names.is_in(list(attempts)).alias("is_anchor")
        table = correction.applied(table)
        sides = beta_sides(table["correct"].to_numpy(), table["other"].to_numpy(), rule.band)
        tables.append(
            table.hstack(pl.DataFrame(sides, _SIDES, orient="row")).with_columns(where, is_decided, is_anchor)
        )
    outcome = _Outcomes(tables, rule)
    index = bisect_right(THRESHOLDS, error_rate, lo=1, key=lambda threshold: outcome.of(threshold)[0]) - 1
    threshold = THRESHOLDS[index]
    priors = as_priors(pl.concat(tables).filter("is_anchor").with_columns(error_rate=pl.lit(threshold)))
    replayed = replay(rule.given(priors), rule, attempts, threshold)
    return RefreshForecast(anchor, threshold, tuple(tables), *outcome.of(threshold), replayed, correction)


class _Outcomes:
    def __init__(self, tables: Sequence[pl.DataFrame], rule: StoppingRule) -> None:
        keys = (*_SHARED, "where", "is_anchor")
        decided = pl.concat(tables).filter("is_decided").group_by(keys)
        classes = decided.agg(pl.len().alias("problems"), pl.col(_SIDES).first()).sort(keys)
        self._rule, self._priors = rule, [Prior(*row) for row in classes.select(_SHARED).iter_rows()]
        self._is_anchor = classes["is_anchor"].to_numpy()
        self._problems = classes["problems"].to_numpy().astype(np.float64)
        sides = classes.select(_SIDES).to_numpy()
        self._change = 1 - sides[np.arange(len(sides)), 1 + classes["where"].to_numpy()]
        self._full = self._expected(0.0)[0]

    def of(self, threshold: float) -> tuple[float, float]:
        """Return the shares of lost decisions and of attempts."""
        needed, lost = self._expected(threshold)
        is_asked = ~self._is_anchor & (self._change >= threshold)
        losses = np.where(is_asked, lost, np.where(self._is_anchor, 0.0, self._change))
        made = np.where(is_asked, needed, np.where(self._is_anchor, self._full, 0.0))
        weights, full = self._problems, float(self._problems @ self._full)
        return float(weights @ losses / weights.sum()), float(weights @ made) / full

    def _expected(self, error_rate: float) -> tuple[Array, Array]:
        known = {str(number): ProblemPrior(prior, error_rate) for number, prior in enumerate(self._priors)}
        rules = self._rule.given(known)
        expectations = [rules.of(name).expectation() for name in known]
        return np.array([item.attempts for item in expectations]), np.array([item.lost for item in expectations])
