"""Find log-probabilities of no possible token, such as NaN or vLLM's -9999.0.

The loss leaves out such tokens; leaving out rollouts would favour likely tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

LOWEST_LOGPROB = -149 * math.log(2)
"""Log of fp32's smallest number, -103.28."""

HIGHEST_LOGPROB = 1e-3
"""Rounding of a probability of 1."""

MAX_IMPOSSIBLE_SHARE = 0.05
"""Max impossible share of a batch's tokens until the run ends."""


def impossible_positions(logprobs: Sequence[float]) -> list[int]:
    """Return the positions of impossible log-probabilities."""
    values = np.asarray(logprobs, np.float64)
    possible = (values >= LOWEST_LOGPROB) & (values <= HIGHEST_LOGPROB)  # False of NaN
    return [] if possible.all() else np.flatnonzero(~possible).tolist()


def possible_mask(logprobs: Sequence[float]) -> list[bool] | None:
    """Return False for impossible tokens; None if there are none."""
    impossible = set(impossible_positions(logprobs))
    return [index not in impossible for index in range(len(logprobs))] if impossible else None
