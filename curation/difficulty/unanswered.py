"""Detects policies with mostly useless responses, by Hoeffding's lower limit (error .01)."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log, sqrt

from curation.policies.excerpt import excerpt

MIN_RESPONSES, MIN_PROBLEMS = 32, 4

ERROR_RATE = 0.01
"""Probability that one check is wrong."""

CUT_OFF, NO_ANSWER = "cut off", "no answer"


@dataclass(slots=True)
class ResponseTally:
    """Counts judged responses; keeps the last useless one of each kind."""

    judged: int = 0
    useless: dict[str, int] = field(default_factory=lambda: {CUT_OFF: 0, NO_ANSWER: 0})
    examples: dict[str, tuple[str, int]] = field(default_factory=dict)
    problems: set[str] = field(default_factory=set)  # the first of them, up to MIN_PROBLEMS

    def add(self, problem: str, index: int, *, has_answer: bool, is_cut_off: bool) -> str | None:
        """Count one response, and return how it is useless."""
        self.judged += 1
        if len(self.problems) < MIN_PROBLEMS:
            self.problems.add(problem)
        if has_answer and not is_cut_off:
            return None
        kind = CUT_OFF if is_cut_off else NO_ANSWER
        self.useless[kind] += 1
        self.examples[kind] = problem, index
        return kind

    @property
    def share(self) -> float:
        """Return the useless share of the judged responses."""
        return sum(self.useless.values()) / self.judged if self.judged else 0.0

    @property
    def most_are_useless(self) -> bool:
        """Return whether more than half are useless."""
        return self.share > 0.5

    @property
    def is_alarming(self) -> bool:
        """Return whether most responses are certainly useless."""
        if self.judged < MIN_RESPONSES or len(self.problems) < MIN_PROBLEMS:
            return False
        return self.share - sqrt(log(1 / ERROR_RATE) / (2 * self.judged)) > 0.5

    def is_likely(self, expected: float | None) -> bool:
        """Return whether most responses are useless once a tenth of the expected ones is judged."""
        is_early = expected is None or self.judged < max(MIN_RESPONSES, expected / 10)
        return not is_early and len(self.problems) >= MIN_PROBLEMS and self.most_are_useless

    @property
    def main_kind(self) -> str:
        """Return the more frequent kind of useless responses."""
        return max(self.useless, key=lambda kind: self.useless[kind])

    def sentence(self, advice: str, text: str | None) -> str:
        """Return the warning for users.

        Args:
            advice: the setting to check.
            text: example of the main kind.
        """
        total, (problem, index) = sum(self.useless.values()), self.examples[self.main_kind]
        counts = ", ".join(f"{kind} {count:,}" for kind, count in self.useless.items() if count)
        return (
            f"{total:,} of the first {self.judged:,} responses ({100 * total / self.judged:.0f} %) are of no use "
            f"({counts}): {advice}. One of them, problem {problem}, attempt {index}: {excerpt(text)}"
        )
