"""Draw rows, and estimate the share of wrong labels from people's verdicts.

Strata have equal sums of sqrt(p (1 - p)) and equal draws (Neyman 1934); the share (Horvitz and Thompson 1952) is valid
even with wrong probabilities.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STRATA = 4

_MIN_CHANCE = 0.002
"""Min distance of probabilities from 0 and 1."""

_DRAWS = 20_000
_PRIOR = 0.5


@dataclass(frozen=True, slots=True)
class AuditStratum:
    """A stratum's size and its drawn problems."""

    size: int
    drawn: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AuditEstimate:
    """The share of wrong labels with its 95 % interval."""

    share: float
    low: float
    high: float
    judged: int
    wrong: int


def draw_places(chances: NDArray[np.float64], size: int, seed: int) -> list[tuple[int, NDArray[np.int64]]]:
    """Draw up to ``size`` problems; return each stratum's size, and its drawn positions among all sorted ids.

    Args:
        chances: of a wrong reference; nan if unknown.
    """
    order = np.argsort(-np.where(np.isnan(chances), np.inf, chances), kind="stable")
    spread = np.clip(np.nan_to_num(chances[order], nan=_MIN_CHANCE), _MIN_CHANCE, 1 - _MIN_CHANCE)
    spread = np.cumsum(np.sqrt(spread * (1 - spread)))
    total = float(spread[-1]) if len(spread) else 1.0
    numbers = np.minimum((spread / total * STRATA - 1e-9).astype(np.int8), STRATA - 1)
    sizes = np.bincount(numbers, minlength=STRATA).tolist()
    rng, start, strata = np.random.default_rng(seed), 0, list[tuple[int, NDArray[np.int64]]]()
    for count, drawn in zip(sizes, _draws_per_stratum(sizes, size), strict=True):
        positions = order[start + np.sort(rng.permutation(count)[:drawn])]
        start += count
        if count:
            strata.append((count, positions))
    return strata


def _draws_per_stratum(sizes: Sequence[int], size: int) -> list[int]:
    shares = [0] * len(sizes)
    for _ in range(min(size, sum(sizes))):
        unfilled = (index for index, number in enumerate(sizes) if shares[index] < number)
        shares[min(unfilled, key=shares.__getitem__)] += 1
    return shares


def estimate_audit(
    strata: Sequence[AuditStratum],
    verdicts: Mapping[str, bool],
    corrected: Collection[str] = (),
    gone: Collection[str] = (),
) -> AuditEstimate | None:
    """Return the share of wrong labels; None while a stratum has no verdict.

    Args:
        verdicts: whether labels are wrong.
        corrected: problems with right labels by now.
        gone: problems that left the set.
    """
    rng = np.random.default_rng(0)
    mended = {*corrected, *gone}
    problems = sum(stratum.size - sum(name in gone for name in stratum.drawn) for stratum in strata)
    expected, judged, wrong = 0.0, 0, 0
    lows, highs = np.zeros(_DRAWS), np.zeros(_DRAWS)
    for stratum in strata:
        known = [verdicts[name] for name in stratum.drawn if name in verdicts]
        if not known:
            return None
        bad, unknown = sum(known), stratum.size - len(known)
        sound, still = len(known) - bad, sum(verdicts.get(name, False) and name not in mended for name in stratum.drawn)
        rates = rng.beta(bad, sound + 1, _DRAWS) if bad else np.zeros(_DRAWS)
        lows += still + rng.binomial(unknown, rates)
        highs += still + rng.binomial(unknown, rng.beta(bad + _PRIOR, sound + _PRIOR, _DRAWS))
        expected += still + unknown * bad / len(known)
        judged, wrong = judged + len(known), wrong + bad
    if not problems:
        return AuditEstimate(0.0, 0.0, 0.0, judged, wrong)
    low, high = float(np.quantile(lows, 0.025)) / problems, float(np.quantile(highs, 0.975)) / problems
    return AuditEstimate(expected / problems, low, high, judged, wrong)
