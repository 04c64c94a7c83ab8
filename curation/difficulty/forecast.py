"""What the remaining attempts at a problem will decide, foreseen from those that are there and from a prior.

The share of correct attempts has a Beta prior, and so has the share of the others that agree with the top wrong answer.
Then the next attempt is correct with probability (a + correct) / (a + b + judged), and so on to the last one (Polya's
urn): a table over all counts, filled from the end, holds each decision's probability. It is the sum over all ways in
which the attempts could go on, weighed by the two beta-binomial distributions.

`Prior` is Jeffreys' where nothing is known of the problem, else what an item response model expects of it
(`curation.difficulty.priors`). Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_JEFFREYS = 0.5
_TOLERANCE = 1e-9

Decide = Callable[[int, int, int, int], str | None]
"""The reason of correct, top wrong votes, judged and attempts; None where the problem is kept."""


@dataclass(frozen=True, slots=True)
class Prior:
    """What is known of a problem before its attempts: two Beta distributions.

    Args:
        correct, other: of the share of correct attempts.
        agree, differ: of the share of the others that agree with the top wrong answer.

    Example: ``Prior()`` is Jeffreys', ``Prior(1.4, 12.0)`` a hard problem
    """

    correct: float = _JEFFREYS
    other: float = _JEFFREYS
    agree: float = _JEFFREYS
    differ: float = _JEFFREYS


@dataclass(frozen=True, slots=True)
class Forecast:
    """The likeliest decision and its probability, by judged, correct and top wrong votes so far.

    Args:
        reasons: the decisions that there are; ``best`` [judged][correct, top wrong] is the place of the likeliest one
            among them, ``chance`` its probability.
    """

    reasons: tuple[str | None, ...]
    best: tuple[NDArray[np.int8], ...]
    chance: tuple[NDArray[np.float64], ...]

    def likely(self, correct: int, top_wrong: int, judged: int) -> tuple[str | None, float]:
        """Return the likeliest decision, and its probability."""
        place = self.best[judged][correct, top_wrong]
        return self.reasons[place], float(self.chance[judged][correct, top_wrong])


def forecast(prior: Prior, decide: Decide, judged: int, attempts: int) -> Forecast:
    """Return the forecast for a problem that ends with so many judged attempts of so many.

    Args:
        decide: the decision on the counts at the end.
    """
    grid = np.full((judged + 1, judged + 1), -1)
    reasons: list[str | None] = []
    for correct in range(judged + 1):
        for top_wrong in range(judged + 1 - correct):
            reason = decide(correct, top_wrong, judged, attempts)
            if reason not in reasons:
                reasons.append(reason)
            grid[correct, top_wrong] = reasons.index(reason)
    chances = (grid[..., None] == np.arange(len(reasons))).astype(np.float64)
    best, chance = [grid.astype(np.int8)], [chances.max(axis=2)]
    for so_far in range(judged - 1, -1, -1):
        solves, agrees = _next(prior, so_far)
        wrong = agrees[..., None] * chances[:-1, 1:] + (1 - agrees)[..., None] * chances[:-1, :-1]
        chances = solves[..., None] * chances[1:, :-1] + (1 - solves)[..., None] * wrong
        best.append(chances.argmax(axis=2).astype(np.int8))
        chance.append(chances.max(axis=2))
    return Forecast(tuple(reasons), tuple(reversed(best)), tuple(reversed(chance)))


@dataclass(frozen=True, slots=True)
class Expectation:
    """What stopping comes to in the mean: ``attempts`` up to the stop; ``lost``: P(another decision than all give)."""

    attempts: float
    lost: float


def expectation(prior: Prior, table: Forecast, error_rate: float, least_judged: int) -> Expectation:
    """Return what a problem of this prior comes to where it stops at an error rate; all attempts are judged.

    Args:
        table: its forecast.
        least_judged: without an error rate nothing stops before so many attempts.
    """
    reach, attempts, lost = np.ones((1, 1)), 0.0, 0.0
    last = len(table.best) - 1
    for made in range(last + 1):
        chance = table.chance[made]
        stops = (chance >= 1 - error_rate - _TOLERANCE) & bool(made >= (1 if error_rate else least_judged))
        ended = np.where(stops | (made == last), reach, 0.0)
        attempts += made * float(ended.sum())
        lost += float((ended * (1 - chance)).sum())
        if made == last:
            break
        on, (solves, agrees) = reach - ended, _next(prior, made)
        reach = np.zeros((made + 2, made + 2))
        reach[1:, :-1] += on * solves
        reach[:-1, 1:] += on * (1 - solves) * agrees
        reach[:-1, :-1] += on * (1 - solves) * (1 - agrees)
    return Expectation(attempts, lost)


def _next(prior: Prior, made: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return [correct, top wrong] the chances of a correct attempt, and of agreement if it is not, after ``made``."""
    solved, top = np.arange(made + 1)[:, None], np.arange(made + 1)[None, :]
    others = np.maximum(made - solved, top)  # above the diagonal lies nothing that can be
    solves = (prior.correct + solved) / (prior.correct + prior.other + made)
    return np.broadcast_to(solves, others.shape), (prior.agree + top) / (prior.agree + prior.differ + others)
