"""Show a run in Weights & Biases; a resumed run continues its steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from flows.run.progress import read_metrics
from flows.run.run_folder import Run

if TYPE_CHECKING:
    from training.evaluation.monitors import Monitor


class _Shown:
    """A run's monitors and next step."""

    def __init__(self, monitors: list[Monitor], step: int) -> None:
        self.monitors, self.step = monitors, step

    def show(self, numbers: Mapping[str, float]) -> None:
        for monitor in self.monitors:
            monitor.log(self.step, numbers)
        self.step += 1


_shown: ContextVar[_Shown | None] = ContextVar("monitors", default=None)


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
    token = _shown.set(_Shown(monitors, len(read_metrics(run.folder)) + lines))
    try:
        yield
    finally:
        _shown.reset(token)
        for monitor in monitors:
            monitor.close()


def show(group: str, numbers: Mapping[str, Any]) -> None:
    """Show a table's numbers under the group's name."""
    if (shown := _shown.get()) is not None:
        shown.show(
            {
                f"{group}/{name}": float(value)
                for name, value in numbers.items()
                if isinstance(value, int | float) and not isinstance(value, bool)
            }
        )
