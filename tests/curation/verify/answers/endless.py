"""A bound of CPU time for what may come to no end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class EndlessError(BaseException):
    """What was bounded took longer; no handler of `Exception` in between catches it."""


@contextmanager
def ending_within(cpu_s: float, what: str) -> Iterator[None]:
    """Raise `EndlessError` if the body needs more CPU seconds; ``what`` is in its text."""

    def stop(_: int, __: FrameType | None) -> None:
        raise EndlessError(f"no end: {what}")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
