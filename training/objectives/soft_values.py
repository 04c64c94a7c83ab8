"""A soft value for each problem: what the best policy of a temperature is worth there, next to a reference.

    V = tau log E_ref e^(r / tau)

prior     from the pass rate p that a set measured of the reference (SPO's Q0, arXiv 2503.05453): with rewards of two
          values, tau log((1 - p) e^(wrong / tau) + p e^(right / tau)). p is (correct + 1/2) / (judged + 1), Jeffreys'
          mean, so that a problem that was never solved has a value too.
learned   a number per problem (DRO, arXiv 2405.19107, without its network): it begins at the prior, where the set has
          a pass rate, else at the first group's, and takes after each step a part of the way to the mean of
          r - tau log(pi / ref) over the problem's group.

Rewards of two values: a response in the asked form and language, right or wrong. The penalty for length, and broken
forms, are not in it.

Invariant: a run that goes on has the values that it would have had (`ProblemValues.state`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from curation.records import ConfigError
from training.config import RewardSettings
from training.rewards import CORRECTNESS, FORMAT


class MeasuredProblem(Protocol):
    """A problem with what its set measured: ``correct`` of ``judged`` attempts of ``policy``."""

    @property
    def id(self) -> str: ...

    @property
    def judged(self) -> int: ...

    @property
    def correct(self) -> int: ...

    @property
    def policy(self) -> str | None: ...


def prior_value(correct: int, judged: int, tau: float, rewards: RewardSettings) -> float:
    """Return V of a problem that the reference solved in ``correct`` of ``judged`` attempts, in units of reward.

    Example: with 0.1 for the format, 0.9 for a correct answer, tau 1 and 1 of 2: 0.1 + log((1 + e^0.9) / 2) = 0.648.
    """
    rate = (correct + 0.5) / (judged + 1)
    wrong = FORMAT + rewards.language
    odds = math.log(1 - rate), math.log(rate) + CORRECTNESS / tau
    most = max(odds)
    return wrong + tau * (most + math.log(sum(math.exp(one - most) for one in odds)))


class ProblemValues:
    """The values of a run's problems.

    Args:
        tasks: the problems, with what their sets measured.
        tau: the objective's.
        rate: what part of its way a value takes after a step; None: values stay as they are.
        rewards: what a response is worth.
    """

    def __init__(
        self, tasks: Iterable[MeasuredProblem], tau: float, rate: float | None, rewards: RewardSettings
    ) -> None:
        self.rate = rate
        self._values = {task.id: prior_value(task.correct, task.judged, tau, rewards) for task in tasks if task.judged}

    def of(self, problem: str) -> float | None:
        """Return a problem's value; None where there is none yet."""
        return self._values.get(problem)

    def learn(self, estimates: Mapping[str, Sequence[float]]) -> None:
        """Take a step towards each problem's estimates, one per group, in their order."""
        if self.rate is None:
            return
        for problem, found in estimates.items():
            for estimate in found:
                value = self._values.get(problem, estimate)
                self._values[problem] = value + self.rate * (estimate - value)

    def state(self) -> dict[str, Any]:
        """Return the values as JSON can hold them; none where they follow from the data."""
        return {} if self.rate is None else dict(self._values)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self._values |= {problem: float(value) for problem, value in state.items()}


def require_measured(tasks: Sequence[MeasuredProblem], reference: str) -> None:
    """Refuse problems without a pass rate, or with one of another policy than the reference.

    Args:
        reference: `model@revision`; a policy of the same revision is the same.

    Raises:
        ConfigError: there is such a problem.
    """
    for task in tasks:
        if not task.judged or task.policy is None:
            raise ConfigError(
                f"objective.value = prior reads pass rates, and problem {task.id} has none; train on curated sets, or "
                "take `group` or `learned`"
            )
        if task.policy.rpartition("@")[2] != reference.rpartition("@")[2]:
            raise ConfigError(
                f"objective.value = prior needs pass rates of the reference {reference}, and problem {task.id} was "
                f"measured with {task.policy}; name that model in `reference`, or take `group` or `learned`"
            )
