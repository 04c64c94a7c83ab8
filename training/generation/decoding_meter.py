"""Measure how much of its time a generator decodes."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DecodingTotals:
    """Slot-seconds of decoding, and of weight exchanges that held slots."""

    decoding: float = 0.0
    held: float = 0.0


class RequestMeter:
    """Count requests of an engine in which ``slots`` requests decode together. Thread-safe."""

    def __init__(self, slots: int) -> None:
        self._slots, self._running, self._held_share = slots, 0, 0.0
        self._decoding = self._held = 0.0
        self._since = time.perf_counter()
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Add a request."""
        self._change(running=1)

    def end(self) -> None:
        """Remove a request."""
        self._change(running=-1)

    def hold(self, share: float = 1.0) -> None:
        """Count this share of the slots as held, until `release`."""
        self._change(held=share)

    def release(self, share: float = 1.0) -> None:
        """Count this share of the slots as free."""
        self._change(held=-share)

    @property
    def totals(self) -> DecodingTotals:
        """Return the totals up to now."""
        self._change()
        return DecodingTotals(self._decoding, self._held)

    def _change(self, running: int = 0, held: float = 0.0) -> None:
        with self._lock:
            now = time.perf_counter()
            held_share = min(max(self._held_share, 0.0), 1.0)
            self._decoding += min(self._running, self._slots) * (1 - held_share) * (now - self._since)
            self._held += self._slots * held_share * (now - self._since)
            self._since = now
            self._running += running
            self._held_share += held
