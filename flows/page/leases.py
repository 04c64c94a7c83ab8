"""Leases each disputed label to one reviewer.

A lease ends after `LEASE_S` without activity.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock

LEASE_S = 300.0


@dataclass(slots=True)
class Leases:
    """A run's leases by session: problem and end. Thread-safe.

    Args:
        clock: in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _held: dict[str, tuple[str, float]] = field(default_factory=dict)
    _skipped: dict[str, set[str]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def take(self, problems: Sequence[str], session: str, wanted: str | None = None) -> str | None:
        """Lease the first free problem, or return None.

        Args:
            problems: in order.
            wanted: preferred, if free.
        """
        with self._lock:
            mine = self._held.pop(session, ("", 0.0))[0]
            others = self._others(session)
            free = [name for name in problems if name not in others]
            fresh = [name for name in free if name not in self._skipped.get(session, ())]
            if not fresh:
                self._skipped.pop(session, None)
            open_to_it = fresh or free
            choice = next((name for name in (wanted, mine) if name in open_to_it), None) or next(iter(open_to_it), None)
            if choice is not None:
                self._held[session] = (choice, self.clock() + LEASE_S)
            return choice

    def renew(self, problem: str, session: str) -> bool:
        """Prolong a lease; return False if another session has it."""
        with self._lock:
            if problem in self._others(session):
                return False
            self._held[session] = (problem, self.clock() + LEASE_S)
            return True

    def skip(self, problem: str, session: str) -> None:
        """Return a problem, not to be offered while others wait."""
        with self._lock:
            self._held.pop(session, None)
            self._skipped.setdefault(session, set()).add(problem)

    def release(self, session: str) -> None:
        """End a session's lease."""
        with self._lock:
            self._held.pop(session, None)

    def _others(self, session: str) -> set[str]:
        now = self.clock()
        return {problem for other, (problem, until) in self._held.items() if other != session and until > now}
