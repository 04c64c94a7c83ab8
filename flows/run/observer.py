"""Who watches a run from outside, such as Prefect's page. Without one a run needs nothing but its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol

from curation.publish.cards import FunnelRow
from flows.run.stage import Stage, StageResult, Step

Item = Stage | Step
Work = Callable[[], StageResult | None]


class Observer(Protocol):
    """Whoever is shown what a run does."""

    def around(self, item: Item, work: Work) -> Work:
        """Return an item's work with something around it, as Prefect's task."""
        ...

    def published(self, name: str, curated: Path, funnel: Sequence[FunnelRow]) -> None:
        """Show a set that was published.

        Args:
            name: of the set.
            curated: the published folder.
        """
        ...


class Nobody:
    """No observer: everything is in the run's folder."""

    def around(self, _item: Item, work: Work) -> Work:
        return work

    def published(self, _name: str, _curated: Path, _funnel: Sequence[FunnelRow]) -> None:
        return None


_watching: ContextVar[Observer | None] = ContextVar("observer", default=None)


def current_observer() -> Observer:
    """Return the observer of `observed_by`, or `Nobody`."""
    return _watching.get() or Nobody()


@contextmanager
def observed_by(observer: Observer) -> Iterator[None]:
    """Have an observer watch the runs of the block."""
    token = _watching.set(observer)
    try:
        yield
    finally:
        _watching.reset(token)
