"""End a run in which a rank hangs.

A rank without progress in a task prints the stack of every thread and exits with `HUNG`; torchrun ends the others. The
one with the least progress hangs.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

HUNG = 70
"""Exit status of a rank that hung."""

HANG_S = 900.0
"""Seconds without a micro-batch done within a task after which a rank hangs."""


class HangWatch:
    """Watches one rank's tasks.

    Args:
        limit_s: max seconds without progress; 0 watches nothing.
        end: ends the process, given the message.
        clock: returns seconds.
    """

    def __init__(
        self,
        rank: int,
        limit_s: float,
        end: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rank, self._limit_s, self._end, self._clock = rank, limit_s, end or _end_hung, clock
        self._task, self._moved, self._count = "", 0.0, 0
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextmanager
    def task(self, name: str) -> Iterator[None]:
        """Watch the block as a task of this name."""
        if not self._limit_s:
            yield
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="hang-watch", daemon=True)
            self._thread.start()
        self._note(name, 0)
        try:
            yield
        finally:
            self._note("", 0)

    def moved_on(self) -> None:
        """Record progress in the task."""
        if self._task:
            self._note(self._task, self._count + 1)

    @property
    def left_s(self) -> float | None:
        """Return the seconds left to make progress; None between tasks."""
        return self._moved + self._limit_s - self._clock() if self._task else None

    def _note(self, task: str, count: int) -> None:
        with self._change:
            self._task, self._count, self._moved = task, count, self._clock()
            self._change.notify()

    def _watch(self) -> None:
        with self._change:
            while True:
                left = self.left_s
                if left is not None and left <= 0:
                    break
                self._change.wait(left)
            sentence = (
                f"rank {self._rank} has not moved on for {self._limit_s:g} s in task `{self._task}`, of which it has "
                f"done {self._count} parts; if no other rank did less, this one hangs. `HANG_S` is the limit."
            )
        self._end(sentence)


def _end_hung(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
    faulthandler.dump_traceback(file=sys.stderr)
    os._exit(HUNG)
