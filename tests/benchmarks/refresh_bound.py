"""The least that any refresh can cost which looks at old attempts and at the new policy's own: a bound, by hindsight.

Problems with the same old counts are one kind. An oracle is told, for each kind, how many of its problems the new
policy solves 0, 1, … n times in n attempts, and stops each problem where that is best: it minimises attempts plus a
price of decisions that differ, the price being such that a given share of all decisions differs (between two prices it
draws lots). No rule that is told less and sees no further policies can be cheaper on these problems; with few problems
of a kind the oracle knows much that nobody could, so the true bound is higher."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import comb

import numpy as np

from curation.config import Band

_PRICES = (0.01, 1e5)
_TURNS = 40

Counted = tuple[str | None, int, int]
"""Reason, correct and judged of a problem."""


def least_cost(
    old: Sequence[Counted], solved: Sequence[int], sides: Sequence[int], band: Band, full: int, share: float
) -> float:
    """Return the least attempts of a refresh, as a share of a full judgement's.

    Args:
        old: what is known of each problem; equal ones are one kind.
        solved: [problems] correct ones of all the new policy's attempts.
        sides: [problems] -1, 0 or 1: where the old decision puts the problem.
        full: attempts of judging everything again.
        share: of the decisions that may differ.
    """
    kinds: dict[tuple[Counted, int], np.ndarray] = defaultdict(lambda: np.zeros(band.attempts + 1))
    for kind, side, correct in zip(old, sides, solved, strict=True):
        kinds[kind, side][correct] += 1

    def spent(price: float) -> tuple[float, float]:
        ends = [_best(counts, band, price, side) for (_, side), counts in kinds.items()]
        return sum(end[0] for end in ends) / full, sum(end[1] for end in ends) / len(old)

    low, high = _PRICES
    for _ in range(_TURNS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if spent(middle)[1] > share else (low, middle)
    (dear, few), (cheap, many) = spent(high), spent(low)
    lots = 0.0 if many <= few else min(1.0, max(0.0, (share - few) / (many - few)))
    return dear + lots * (cheap - dear)


def _best(counts: np.ndarray, band: Band, price: float, side: int) -> tuple[float, float]:
    """Return attempts and differing decisions of one kind, where each problem stops best.

    Args:
        counts: [attempts + 1] problems by correct ones of all.
        side: of the old decision, which stands where no attempt is made.
    """
    n, most = band.attempts, int(band.attempts * band.max_pass_rate + 1e-9)
    number = np.arange(n + 1)
    where = np.where(number < band.min_correct, -1, np.where(number > most, 1, 0))
    later: list[tuple[float, float]] = []
    for made in range(n, -1, -1):
        states = []
        for correct in range(made + 1):
            mass = np.array([_orders(counts[k], k, n, made, correct) for k in range(n + 1)])
            kept = mass[where == side].sum() if not made else max(mass[where == one].sum() for one in (-1, 0, 1))
            stop = (0.0, float(mass.sum() - kept))
            if made < n:
                more = [float(mass.sum()) + later[correct][0] + later[correct + 1][0]]
                on = (more[0], later[correct][1] + later[correct + 1][1])
                stop = min(stop, on, key=lambda end: end[0] + price * end[1])
            states.append(stop)
        later = states
    return later[0]


def _orders(problems: float, total: int, n: int, made: int, correct: int) -> float:
    """Return how many problems begin with one given order of ``made`` attempts, ``correct`` of them correct."""
    possible = correct <= total and made - correct <= n - total
    return problems * comb(n - made, total - correct) / comb(n, total) if possible else 0.0
