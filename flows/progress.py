"""Progress bars on long work, on standard error; a plain line per stage where nobody watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]


@contextmanager
def bar(title: str, total: int | None, done: int = 0) -> Iterator[Advance]:
    """Show ``title`` with a bar over ``total`` rows, ``done`` of them from an earlier run; yields ``advance(rows)``."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    begun = time.monotonic()
    rows = done
    if not console.is_terminal:

        def count(more: int) -> None:
            nonlocal rows
            rows += more

        yield count
        print(f"{title:<24} {rows:>9,} rows  {time.monotonic() - begun:6.1f} s", file=sys.stderr, flush=True)
        return
    columns = (
        TextColumn("{task.description:<24}"),
        BarColumn(bar_width=32),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=total, completed=done)
        yield lambda more: progress.advance(task, more)
        if total is None:
            progress.update(task, total=progress.tasks[0].completed)
