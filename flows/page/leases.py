"""Lease disputed labels to reviewers, so that two people do not get the same one at once.

Invariants: ``DIR/review.leases.json`` changes under a lock; a lease ends after `LEASE_S` without activity; no verdict
is in it.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from curation.storage.stages import atomic_write

FILE, LOCK = "review.leases.json", ".review.lock"
LEASE_S = 300.0


class Leases:
    """The leases of a run folder.

    Args:
        clock: seconds since 1970; they are compared among servers.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._clock = folder, clock

    def take(self, problems: Sequence[str], session: str, wanted: str | None = None) -> str | None:
        """Give a session the first problem that no one else holds; None where there is none.

        Args:
            problems: that wait, in their order.
            wanted: the problem that it would rather have.
        """
        with self._held() as table:
            others = {name for name, lease in table["leases"].items() if lease["session"] != session}
            free = [name for name in problems if name not in others]
            skipped = table["skipped"].get(session, [])
            fresh = [name for name in free if name not in skipped]
            if not fresh:
                table["skipped"].pop(session, None)
            mine = next((name for name, lease in table["leases"].items() if lease["session"] == session), None)
            choice = next((name for name in (wanted, mine) if name in (fresh or free)), None)
            choice = choice or next(iter(fresh or free), None)
            self._release(table, session)
            if choice is not None:
                table["leases"][choice] = {"session": session, "until": self._clock() + LEASE_S}
            return choice

    def renew(self, problem: str, session: str) -> bool:
        """Prolong a session's lease; return False where another has the problem by now."""
        with self._held() as table:
            lease = table["leases"].get(problem)
            if lease is not None and lease["session"] != session:
                return False
            table["leases"][problem] = {"session": session, "until": self._clock() + LEASE_S}
            return True

    def skip(self, problem: str, session: str) -> None:
        """Give a problem back, and do not get it again while others wait."""
        with self._held() as table:
            self._release(table, session)
            skipped = table["skipped"].setdefault(session, [])
            if problem not in skipped:
                skipped.append(problem)

    def release(self, session: str) -> None:
        """Give back what a session holds."""
        with self._held() as table:
            self._release(table, session)

    @staticmethod
    def _release(table: dict[str, Any], session: str) -> None:
        table["leases"] = {name: lease for name, lease in table["leases"].items() if lease["session"] != session}

    @contextmanager
    def _held(self) -> Iterator[dict[str, Any]]:
        """Yield the table without leases that have ended, and write it down afterwards."""
        path = self._folder / FILE
        with (self._folder / LOCK).open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            table = _read(path)
            now = self._clock()
            table["leases"] = {name: lease for name, lease in table["leases"].items() if lease["until"] > now}
            yield table
            atomic_write(path, json.dumps(table) + "\n")


def _read(path: Path) -> dict[str, Any]:
    empty: dict[str, Any] = {"leases": {}, "skipped": {}}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return empty
    return content if isinstance(content, dict) and empty.keys() <= content.keys() else empty
