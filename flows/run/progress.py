"""Show progress on standard error, as bars or lines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any

from curation.public_urls import public_text

Advance = Callable[[int], None]


class Verbosity(Enum):
    """How much is printed on standard error."""

    QUIET = "warnings alone"
    NORMAL = "a bar or a line per stage"
    VERBOSE = "also which stages were finished before"


_verbosity = Verbosity.NORMAL


def set_verbosity(verbosity: Verbosity) -> None:
    """Set how much is printed."""
    global _verbosity
    _verbosity = verbosity


def _print(line: str) -> None:
    from flows.run.safe_text import written_out

    print(written_out(line), file=sys.stderr, flush=True)


def print_detail(text: str) -> None:
    """Print a line if verbose."""
    if _verbosity is Verbosity.VERBOSE:
        _print(text)


def print_line(text: str) -> None:
    """Print a line unless quiet."""
    if _verbosity is not Verbosity.QUIET:
        _print(text)


NOTE_S = 60.0
"""Seconds between notes without a terminal."""

_notes: list[Callable[[str, int | None], None]] = []
"""Each shown bar's note printer, innermost last."""

METRICS = "metrics.jsonl"
"""In the run folder: progress and warnings of all stages."""

_printers: list[Callable[[str], None]] = []
"""Each terminal bar's line printer, innermost last."""


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """Read a run's `METRICS`, even while written."""
    path = run / METRICS
    rows: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue  # the last line of a run that is writing it, or one that a kill cut off
    return rows


def warn(run: Path, stage: str, text: str) -> None:
    """Print a warning and log it in the run's `METRICS`, without secrets in URLs."""
    text = public_text(text)
    row = {"at": round(time.time(), 2), "stage": stage, "warning": text}
    with (run / METRICS).open("a", encoding="utf-8") as out:
        out.write(json.dumps(row) + "\n")
    line = f"warning: {stage}: {text}"
    if _printers:
        _printers[-1](line)
    else:
        _print(line)


def note(text: str, left: int | None = None) -> None:
    """Show a text below the bar, if any.

    Args:
        left: undecided rows; the bar counts the others as done.
    """
    if _notes:
        _notes[-1](text, left)


@contextmanager
def bar(title: str, total: int | None, finished: int = 0, *, is_part: bool = False) -> Iterator[Advance]:
    """Show a bar over ``total`` rows, ``finished`` of them earlier; yield ``advance(rows)``.

    Args:
        is_part: it is within another bar's work.
    """
    if _verbosity is Verbosity.QUIET or (_notes and not is_part):  # the outer bar is shown
        yield lambda _more: None
        return
    from flows.run.terminal import SafeConsole

    console = SafeConsole(stderr=True, highlight=True, markup=True, soft_wrap=False)
    begun = time.monotonic()
    rows = finished
    if not console.is_terminal:

        def count(more: int) -> None:
            nonlocal rows
            rows += more

        last_note = begun

        def print_note(text: str, _left: int | None) -> None:
            nonlocal last_note
            if time.monotonic() - last_note > NOTE_S:
                last_note = time.monotonic()
                _print(f"{title:<24} {text}")

        with _noting(print_note):
            yield count
        if not is_part:
            _print(f"{title:<24} {rows:>9,} rows  {time.monotonic() - begun:6.1f} s")
        return
    from flows.run.bars import Bars

    with Bars(console) as bars:
        task = bars.add_task(title, total=total, completed=finished, note="")

        def show(done: int) -> None:
            bars.update(task, completed=max(bars.tasks[0].completed, done))

        def show_note(text: str, left: int | None) -> None:
            bars.update(task, note=text)
            show(0 if left is None or total is None else total - left)

        def advance(more: int) -> None:
            nonlocal rows
            rows += more
            show(rows)

        with _noting(show_note):
            _printers.append(lambda text: bars.console.print(text, markup=False, highlight=False, soft_wrap=True))
            try:
                yield advance
            finally:
                _printers.pop()
        if total is None:
            bars.update(task, total=bars.tasks[0].completed)


@contextmanager
def _noting(write: Callable[[str, int | None], None]) -> Iterator[None]:
    _notes.append(write)
    try:
        yield
    finally:
        _notes.pop()
