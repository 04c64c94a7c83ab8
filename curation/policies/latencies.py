"""How long the last answers took: their 95th percentile, computed again every few answers."""

from __future__ import annotations

from collections import deque

_KEPT, _LEAST, _EVERY = 512, 64, 32
_QUANTILE = 0.95


class RecentLatencies:
    """Seconds of the last answers. ``quantile`` is None while too few are known."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=_KEPT)
        self._added = 0
        self.quantile: float | None = None

    def add(self, seconds: float) -> None:
        """Count an answer."""
        self._seconds.append(seconds)
        self._added += 1
        if self._added >= _LEAST and self._added % _EVERY == 0:
            ordered = sorted(self._seconds)
            self.quantile = ordered[int(_QUANTILE * (len(ordered) - 1))]
