"""Which shapes of inputs to make more of: those that told wrong programs apart before.

A shape is how large an input's counts are and how its values are drawn, or the change that made it of another. Each is
an arm of a bandit: it pays where one of its inputs fails a wrong program that few inputs failed before. Arms are drawn
by Thompson sampling, from Beta(prior + paid, prior + not paid) (Thompson 1933; Chapelle and Li 2011), so that shapes of
which little is known are still tried.

Invariants: pure but for its own counts; the same calls in the same order with the same seed choose the same shapes. It
learns from the programs that it is told of and no others: whoever scores it holds the scored ones back.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

_PRIOR_WEIGHT = 2.0
"""Inputs that the prior counts for."""


@dataclass(slots=True)
class ShapeChoice:
    """A bandit over shapes. ``priors``: each shape's share of payments that is expected before any was seen."""

    priors: Mapping[str, float]
    paid: dict[str, int] = field(default_factory=dict)
    tried: dict[str, int] = field(default_factory=dict)

    def choose(self, draw: random.Random) -> str:
        """Return the shape to make next."""

        def sample(shape: str) -> float:
            paid, tried = self.paid.get(shape, 0), self.tried.get(shape, 0)
            prior = _PRIOR_WEIGHT * self.priors[shape]
            return draw.betavariate(prior + paid, _PRIOR_WEIGHT - prior + tried - paid)

        return max(self.priors, key=sample)

    def learn(self, shape: str, *, paid: bool) -> None:
        """Count what an input of a shape gave."""
        if shape in self.priors:
            self.tried[shape] = self.tried.get(shape, 0) + 1
            self.paid[shape] = self.paid.get(shape, 0) + paid
