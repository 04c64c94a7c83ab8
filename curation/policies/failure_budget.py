"""The number of problems that a stage may refuse.

Invariants: one is allowed unless the share is 0; `IN_A_ROW` refusals in a row end any run.
"""

from __future__ import annotations

from collections import Counter

from curation.records import PolicyError, RequestRefused

IN_A_ROW = 20


class FailureBudget:
    """A stage's refused problems, each counted once.

    Args:
        share: of ``problems`` that may be refused.
    """

    def __init__(self, share: float, problems: int, setting: str = "", before: int = 0) -> None:
        self.allowed = max(1, int(share * problems + 1e-9)) if share else 0
        self._share, self._problems, self._setting, self._before = share, problems, setting, before
        self._refused: dict[str, str] = {}
        self._in_a_row = 0

    @property
    def refused(self) -> int:
        """Return the number of refused problems."""
        return self._before + len(self._refused)

    def count_answer(self) -> None:
        """Count an answer."""
        self._in_a_row = 0

    def count_refusal(self, problem: str, refusal: RequestRefused) -> None:
        """Count a refused problem; raise `PolicyError` after too many."""
        if problem in self._refused:
            return
        self._refused[problem] = refusal.kind
        self._in_a_row += 1
        if self.refused <= self.allowed and self._in_a_row < IN_A_ROW:
            return
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in Counter(self._refused.values()).most_common())
        kinds += f", {self._before:,} before" if self._before else ""
        counts = f"{self.refused:,} of {self._problems:,} problems were refused ({kinds}), "
        if self.refused > self.allowed:
            counts += f"more than {self._setting or 'the share'} = {self._share:g} allows ({self.allowed:,})"
        else:
            counts += f"{IN_A_ROW} of them one after the other with no answer between them"
        advice = f"Fix the cause or raise {self._setting}" if self._setting else "Fix the cause"
        raise PolicyError(
            f"{counts}; the last, problem {problem}: {refusal.reason.rstrip('.')}. {advice}; the next run asks only "
            "for what is missing."
        )
