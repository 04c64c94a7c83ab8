"""How far sampling has come: the figures behind the progress line and ``metrics.jsonl``. Counts only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class SamplingProgress:
    """How far sampling has come. ``kept`` and ``dropped`` are decisions as the rule foresees them.

    ``servers`` is how the servers fare, of a policy that has some: `curation.policies.client.ServerClient.health`.
    """

    problems: int = 0
    attempts: int = 0
    aborted: int = 0
    skipped: int = 0
    tokens: int = 0
    seconds: float = 0.0
    in_flight: int = 0
    servers: Mapping[str, float] = field(default_factory=dict)
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    total: int | None = None

    def carry_on(self, before: SamplingProgress) -> None:
        """Count from what an earlier part of the stage made and took; its problems are counted again as they pass."""
        self.attempts, self.tokens = before.attempts, before.tokens
        self.aborted, self.seconds = before.aborted, before.seconds

    @property
    def tokens_per_s(self) -> float:
        """Return the sampled tokens per second since sampling began."""
        return self.tokens / self.seconds if self.seconds > 0 else 0.0

    @property
    def eta_s(self) -> float | None:
        """Return the seconds left if the rest takes as long as what is done; None while that is unknown."""
        if self.total is None or not self.problems:
            return None
        return self.seconds * (self.total - self.problems) / self.problems

    def row(self) -> dict[str, object]:
        """Return the figures as a JSON object."""
        eta = self.eta_s
        return {
            "problems": self.problems,
            "total": self.total,
            "attempts": self.attempts,
            "skipped": self.skipped,
            "aborted": self.aborted,
            "tokens": self.tokens,
            "tokens_per_s": round(self.tokens_per_s, 1),
            "in_flight": self.in_flight,
            **self.servers,
            "kept": self.kept,
            "dropped": dict(self.dropped),
            "seconds": round(self.seconds, 2),
            "eta_s": None if eta is None else round(eta, 1),
        }
