"""Run from stored attempts alone (`goldilocks run --offline`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from curation.records import ConfigError

_OFFLINE: ContextVar[bool] = ContextVar("offline", default=False)


@contextmanager
def offline() -> Iterator[None]:
    """Ask no model in this block."""
    token = _OFFLINE.set(True)
    try:
        yield
    finally:
        _OFFLINE.reset(token)


def is_offline() -> bool:
    """Return whether no model may be asked."""
    return _OFFLINE.get()


def refuse_offline(needs: str) -> None:
    """Refuse work that needs a model, as in `the model small answers 40 questions`."""
    if is_offline():
        raise ConfigError(f"--offline asks no model, and {needs}; run the recipe without --offline.")
