"""A soft value for each problem: the worth of the best policy near a reference.

    V = tau log E_ref e^(r / tau)

prior     tau log((1 - p) e^(wrong / tau) + p e^(right / tau)) from the reference's pass rate p (SPO's Q0, arXiv
          2503.05453), estimated as (correct + 1/2) / (judged + 1).
learned   a number per problem (DRO, arXiv 2405.19107, without its network), from the prior or the first group on; it
          moves towards each group's mean of r - tau log(pi / ref).

Both rewards assume the asked format and language, without a length penalty.

Invariant: a resumed run has the same values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from curation.records import ConfigError
from training.config import RewardSettings
from training.rewards import CORRECTNESS, FORMAT


class MeasuredProblem(Protocol):
    """A problem with its measurement: ``correct`` of ``judged`` attempts of ``policy``."""

    @property
    def id(self) -> str: ...

    @property
    def judged(self) -> int: ...

    @property
    def correct(self) -> int: ...

    @property
    def policy(self) -> str | None: ...


def prior_value(correct: int, judged: int, tau: float, rewards: RewardSettings) -> float:
    """Return V, in units of reward, of a problem solved by ``correct`` of ``judged`` attempts of the reference.

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
        rate: the share of the way to an estimate that a value moves; None: values are fixed.
    """

    def __init__(
        self, tasks: Iterable[MeasuredProblem], tau: float, rate: float | None, rewards: RewardSettings
    ) -> None:
        self.rate = rate
        self._values = {task.id: prior_value(task.correct, task.judged, tau, rewards) for task in tasks if task.judged}

    def of(self, problem: str) -> float | None:
        """Return a problem's value; None if it has none yet."""
        return self._values.get(problem)

    def learn(self, estimates: Mapping[str, Sequence[float]]) -> None:
        """Move values towards each problem's estimates, one per group, in order."""
        if self.rate is None:
            return
        for problem, found in estimates.items():
            for estimate in found:
                value = self._values.get(problem, estimate)
                self._values[problem] = value + self.rate * (estimate - value)

    def state(self) -> dict[str, Any]:
        """Return the values for JSON; empty if they are fixed."""
        return {} if self.rate is None else dict(self._values)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state`."""
        self._values |= {problem: float(value) for problem, value in state.items()}


def require_measured(tasks: Sequence[MeasuredProblem], reference: str) -> None:
    """Require a pass rate of the reference for every problem.

    Args:
        reference: `model@revision`; only revisions are compared.

    Raises:
        ConfigError: a problem has none.
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
