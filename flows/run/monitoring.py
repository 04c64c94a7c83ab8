"""Show a run in Weights & Biases; a resumed run continues its steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import TYPE_CHECKING, Any

from flows.run.progress import read_metrics
from flows.run.run_folder import Run

if TYPE_CHECKING:
    from training.evaluation.monitors import Monitor


_shown: ContextVar[tuple[list[Monitor], Iterator[int]] | None] = ContextVar("monitors", default=None)


@contextmanager
def monitored(run: Run) -> Iterator[None]:
    """Show the block's run if its recipe asks.

    Raises:
        ConfigError: a package is not installed.
    """
    settings = run.recipe.monitor
    if not settings.wandb:
        yield
        return
    from training.evaluation.monitors import open_monitors

    table = run.recipe.model_dump(mode="json")
    monitors = list(open_monitors(settings, run.recipe.name, run.folder, table))
    history = run.folder / "history.jsonl"
    lines = history.read_bytes().count(b"\n") if history.exists() else 0
    token = _shown.set((monitors, count(len(read_metrics(run.folder)) + lines)))
    try:
        yield
    finally:
        _shown.reset(token)
        for monitor in monitors:
            monitor.close()


def show(group: str, numbers: Mapping[str, Any]) -> None:
    """Show a table's numbers under the group's name."""
    monitors, steps = _shown.get() or ((), count())
    shown = {
        f"{group}/{name}": float(value)
        for name, value in numbers.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    step = next(steps)
    for monitor in monitors:
        monitor.log(step, shown)
