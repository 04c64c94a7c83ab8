"""Measure how much of its time an engine decodes."""

from __future__ import annotations

import threading
import time


class RequestMeter:
    """Count the slot-seconds of requests in an engine in which ``slots`` requests decode together. Thread-safe."""

    def __init__(self, slots: int) -> None:
        self._slots, self._running, self._held_share, self._decoding = slots, 0, 0.0, 0.0
        self._since = time.perf_counter()
        self._lock = threading.Lock()

    def change(self, running: int = 0, held: float = 0.0) -> float:
        """Return the slot-seconds up to now; then add requests, and a share of the slots that an exchange of weights
        holds, or remove them.
        """
        with self._lock:
            now = time.perf_counter()
            free = 1 - min(max(self._held_share, 0.0), 1.0)
            self._decoding += min(self._running, self._slots) * free * (now - self._since)
            self._since = now
            self._running += running
            self._held_share += held
            return self._decoding
