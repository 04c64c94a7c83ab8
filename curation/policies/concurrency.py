"""How many requests one server gets at once: additive increase, multiplicative decrease (AIMD), under a cap.

Invariants:
  - the limit is halved where the server refuses a request for now (429, 503) or does not answer in time, once per
    round at most: refusals of one moment are one sign;
  - each round of answers raises it by one again, while it is what binds, up to the cap;
  - where nobody says what the server bears (``probes``), the limit doubles from `FIRST_LIMIT` while each doubling is
    worth its latency. A window is as many answers as the limit; where it brings less than `WORTH_IT` times the best
    throughput so far and every byte takes `SLOWER` times as long as it did, the limit falls to nine tenths.

What concurrency changes is when an attempt is made, never which. The clock is the caller's. Source of the rule: D.-M.
Chiu and R. Jain, Analysis of the increase and decrease algorithms for congestion avoidance, 1989.
"""

from __future__ import annotations

FIRST_LIMIT = 16
"""Where the limit of a server begins that is probed."""

WORTH_IT, SLOWER = 1.1, 2.0


class AdaptiveLimit:
    """The limit of one server.

    Args:
        cap: requests at once that are never passed.
        probes: whether it begins low and looks for what the server bears; else it begins at the cap.
    """

    def __init__(self, cap: int, *, probes: bool = False) -> None:
        self.cap, self.probes = cap, probes
        self._limit = float(min(cap, FIRST_LIMIT) if probes else cap)
        self._doubles = probes
        self._cut_until = self._latency_s = 0.0
        self._begun = self._seconds = self._best_throughput = 0.0
        self._answers = self._bytes = 0
        self._window = self.value
        self._best_pace = float("inf")

    @property
    def value(self) -> int:
        """Return how many requests the server may have now."""
        return int(self._limit)

    def answered(self, size: int, seconds: float, now: float, outstanding: int) -> None:
        """Count an answer of so many bytes, which took so long; ``outstanding`` is what the server had with it."""
        self._latency_s = seconds if not self._latency_s else 0.9 * self._latency_s + 0.1 * seconds
        if self.probes:
            self._count(size, seconds, now)
        if outstanding >= self.value and self._limit < self.cap:  # less is no sign of what it bears
            self._limit = min(self.cap, self._limit + (1.0 if self._doubles else 1.0 / self._limit))

    def refused(self, now: float) -> None:
        """Count that the server would not take a request for now, or did not answer it in time."""
        if now < self._cut_until:
            return
        self._limit, self._doubles = max(1.0, self._limit / 2), False
        self._cut_until = now + self._latency_s
        self._begin_window(now)

    def _count(self, size: int, seconds: float, now: float) -> None:
        """Count an answer in its window, and look at the window when it is whole."""
        if not self._answers:
            self._begun = now - seconds
        self._answers += 1
        self._bytes += size
        self._seconds += seconds
        if self._answers < self._window:
            return
        throughput = self._bytes / max(now - self._begun, 1e-9)
        pace = self._seconds / max(self._bytes, 1)
        if throughput < WORTH_IT * self._best_throughput:
            self._doubles = False
            if pace > SLOWER * self._best_pace:
                self._limit = max(1.0, 0.9 * self._limit)
        self._best_throughput = max(self._best_throughput, throughput)
        self._best_pace = min(self._best_pace, pace)
        self._begin_window(now)

    def _begin_window(self, now: float) -> None:
        self._begun, self._answers, self._bytes, self._seconds = now, 0, 0, 0.0
        self._window = self.value
