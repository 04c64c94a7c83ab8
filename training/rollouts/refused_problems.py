"""Problems whose prompts the generators' servers refuse: left out of a training run, and counted.

A refused rollout leaves its whole group out (`training.rollouts.rollout_scheduler`): a group that lacks some of its
rollouts has another mean. The problem is not drawn again in this run; a run that is resumed asks it once more. Too many
of them end the run (`curation.policies.failure_budget`).
"""

from __future__ import annotations

from collections.abc import Callable

from curation.policies.failure_budget import FailureBudget
from curation.records import RequestRefused

MAX_REFUSED = 0.01
"""Share of the problems that may be refused before the run ends."""

_MOST_DRAWS = 1000
"""Draws in a row that may be refused problems; they are few, unless there are no others."""


class RefusedProblems:
    """The refused problems of a run.

    Args:
        problems: how many there are.
        draw: draws the next problem.
        say: prints a line; called once for each of them.
    """

    def __init__(self, problems: int, draw: Callable[[], str], say: Callable[[str], None]) -> None:
        self._budget = FailureBudget(MAX_REFUSED, problems)
        self._draw, self._say = draw, say
        self.ids: set[str] = set()

    def draw(self) -> str | None:
        """Return the next problem that was not refused; None where there is none."""
        for _ in range(_MOST_DRAWS):
            problem = self._draw()
            if problem not in self.ids:
                return problem
        return None

    def count_answer(self) -> None:
        """Note that a request was answered."""
        self._budget.count_answer()

    def add(self, problem: str, refusal: RequestRefused) -> None:
        """Leave a problem out from now on.

        Raises:
            PolicyError: these are too many.
        """
        if problem not in self.ids:
            self._say(f"problem {problem} is left out: {refusal}")
        self.ids.add(problem)
        self._budget.count_refusal(problem, refusal)
