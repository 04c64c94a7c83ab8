"""Log-probabilities with which no token can have been drawn: found, left out, counted.

A token that was drawn had a probability: one that is not 0 in fp32, in which engines draw, and not above 1. Impossible
are NaN, infinities, -9999.0 (vLLM's floor, which represents -inf, NaN, or nothing known of the token), any other floor
below the logarithm of fp32's smallest number, and what is above 0 beyond rounding.

Such a token's ratio means nothing, so the token is left out of the loss and of its denominators. The rollout stays: its
reward is the verdict on its text, which is as it is; the group's mean needs it; and the other tokens' probabilities are
given those before them, whatever became of one number. To drop whole rollouts would leave out just those that hold
unlikely tokens. Where many are impossible, the engine's numbers are broken as a whole, and the run ends.

Not here: probabilities that are possible, but not the trainer's (`training.objectives.step_statistics`); which
rollouts are looked through (`training.rollouts.batches`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curation.records import PolicyError

LOWEST_LOGPROB = -149 * math.log(2)
"""Natural logarithm of fp32's smallest number, -103.28."""

HIGHEST_LOGPROB = 1e-3
"""Rounding of a probability of 1."""

MAX_IMPOSSIBLE_SHARE = 0.05
"""Share of a batch's tokens that may be impossible: they are left out and counted; with more the run ends. Not in the
paper."""


def float_array(values: Sequence[float]) -> NDArray[np.float64]:
    """Return floats as an array, in two fifths of the time that `numpy.asarray` takes."""
    return np.frombuffer(struct.pack(f"{len(values)}d", *values))


def impossible_positions(logprobs: Sequence[float]) -> list[int]:
    """Return the places of those log-probabilities with which nothing can be drawn."""
    values = float_array(logprobs)
    if not len(values) or (
        values.min() >= LOWEST_LOGPROB and values.max() <= HIGHEST_LOGPROB
    ):  # neither is true of NaN
        return []
    return [place for place, value in enumerate(logprobs) if not LOWEST_LOGPROB <= value <= HIGHEST_LOGPROB]


def possible_mask(logprobs: Sequence[float]) -> list[bool] | None:
    """Return False for tokens with an impossible log-probability, True for others; None where there is none such."""
    impossible = set(impossible_positions(logprobs))
    return [place not in impossible for place in range(len(logprobs))] if impossible else None


@dataclass(frozen=True, slots=True)
class ImpossibleTokens:
    """How many of a batch's tokens have an impossible log-probability; ``value`` is the first, in ``problem``.

    Example: ``ImpossibleTokens(3, 51_200, -9999.0, "aime-7")``
    """

    count: int
    tokens: int
    value: float = 0.0
    problem: str = ""

    def __str__(self) -> str:
        return (
            f"{self.count:,} of {self.tokens:,} tokens of the batch have an impossible log-probability "
            f"(the first: {self.value:g}, problem {self.problem})"
        )

    def require_at_most(self, share: float) -> None:
        """Raise PolicyError if more than this share of the batch's tokens is impossible."""
        if self.count > share * self.tokens:
            raise PolicyError(
                f"{self}, more than {100 * share:g} %: the generator's numbers are "
                "broken, and the learning rate is not the cause. Look at its log; try another dtype in the model's "
                "table or an unquantised model; a server must be started with `python -m "
                "training.generation.serving`, so that it reports log-probabilities of what it draws from"
            )
