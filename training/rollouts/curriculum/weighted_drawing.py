"""Order active problems by their estimated pass rates, without replacement.

    gaussian   in proportion to exp(-(p - m)^2 / 2 s^2), p the posterior mean, m falling over the run; by domain
    thompson   a draw from each problem's posterior Beta(1 + correct, 1 + wrong), the nearest to 1/2 first

Invariant: the same numbers and seed give the same order.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

GAUSSIAN_MEANS = (0.8, 0.3)
"""Mean pass rate of the Gaussian at the run's begin and at its end."""

GAUSSIAN_SPREAD = 0.15
"""Standard deviation of the Gaussian, in pass rate."""

LEAST_WEIGHT = 1e-6
"""Weight of a pass rate far from the mean: nothing starves."""


def weighted_order(
    counts: Mapping[str, tuple[float, float]],
    draw: Literal["gaussian", "thompson"],
    progress: float,
    seed: str,
    domains: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the problems in the order in which they are drawn next (Efraimidis and Spirakis 2006, keys u^(1/w)).

    Args:
        counts: weights of correct and of wrong rollouts, by problem (`weigh_counts`).
        progress: finished share of the run, from 0 to 1.
        domains: of the problems; only the Gaussian uses them.
    """
    names = sorted(counts)
    generator = np.random.default_rng(random.Random(seed).getrandbits(64))
    a, b = 1 + np.array([counts[name] for name in names]).reshape(-1, 2).T
    if draw == "thompson":
        keys = np.abs(generator.beta(a, b) - 0.5)
    else:
        keys = generator.exponential(size=len(names)) / draw_weights(a / (a + b), progress)
    order = [names[place] for place in np.argsort(keys, kind="stable")]
    return _mixed(order, domains) if draw == "gaussian" and domains else order


def _mixed(order: Sequence[str], domains: Mapping[str, str]) -> list[str]:
    """Return an order in which every prefix has each domain's share of all problems, to within one."""
    by_domain: dict[str, list[str]] = {}
    for name in order:
        by_domain.setdefault(domains.get(name, ""), []).append(name)
    places = {
        name: ((rank + 0.5) / len(members), domain)
        for domain, members in by_domain.items()
        for rank, name in enumerate(members)
    }
    return sorted(order, key=places.__getitem__)


def draw_weights(rates: Numbers, progress: float) -> Numbers:
    """Return the weight of each pass rate, from `LEAST_WEIGHT` to 1."""
    first, last = GAUSSIAN_MEANS
    mean = first + (last - first) * min(max(progress, 0.0), 1.0)
    weights: Numbers = np.maximum(np.exp(-0.5 * ((rates - mean) / GAUSSIAN_SPREAD) ** 2), LEAST_WEIGHT)
    return weights
