"""Leave out problems whose prompts the generators refuse; a resumed run asks them again."""

from __future__ import annotations

from collections.abc import Callable

from curation.policies.failure_budget import FailureBudget
from curation.records import RequestRefused

MAX_REFUSED = 0.01
"""Share of the problems that may be refused before the run ends."""

_MOST_DRAWS = 1000
"""Draws in a row that may be refused problems; they are few, unless there are no others."""


class RefusedProblems:
    """The refused problems of a run; ``draw`` draws any problem, ``say`` prints a line for each refused one."""

    def __init__(self, problems: int, draw: Callable[[], str], say: Callable[[str], None]) -> None:
        self._budget = FailureBudget(MAX_REFUSED, problems)
        self._draw, self._say = draw, say
        self.ids: set[str] = set()

    def draw(self) -> str | None:
        """Return the next problem that was not refused, or None after many draws."""
        for _ in range(_MOST_DRAWS):
            problem = self._draw()
            if problem not in self.ids:
                return problem
        return None

    def count_answer(self) -> None:
        """Count an answered request."""
        self._budget.count_answer()

    def add(self, problem: str, refusal: RequestRefused) -> None:
        """Leave a problem out from now on.

        Raises:
            PolicyError: too many problems are refused.
        """
        if problem not in self.ids:
            self._say(f"problem {problem} is left out: {refusal}")
        self.ids.add(problem)
        self._budget.count_refusal(problem, refusal)
