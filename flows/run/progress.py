"""Show progress on standard error, as bars or lines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.public_urls import public_text
from flows.run.safe_text import written_out

if TYPE_CHECKING:
    from flows.run.bars import Bar

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
    print(written_out(line), file=sys.stderr, flush=True)


def print_detail(text: str) -> None:
    """Print a line if verbose."""
    if _verbosity is Verbosity.VERBOSE:
        _print(text)


def print_line(text: str) -> None:
    """Print a line unless quiet."""
    if _verbosity is not Verbosity.QUIET:
        _print(text)


NOTE_S = 60.0  # seconds between notes without a terminal


class _Lines:
    """Progress without a terminal: a note at times, and a line at the end."""

    def __init__(self, title: str) -> None:
        self._title, self._rows, self._begun = title, 0, time.monotonic()
        self._noted = self._begun

    def count(self, rows: int) -> None:
        self._rows += rows

    def note(self, text: str, _left: int | None) -> None:
        if time.monotonic() - self._noted > NOTE_S:
            self._noted = time.monotonic()
            _print(f"{self._title:<24} {text}")

    def print_line(self, line: str) -> None:
        _print(line)

    def finish(self) -> None:
        _print(f"{self._title:<24} {self._rows:>9,} rows  {time.monotonic() - self._begun:6.1f} s")

    def stop(self) -> None:
        pass


_shown: list[_Lines | Bar] = []  # the shown bars, innermost last
METRICS = "metrics.jsonl"  # in the run folder: progress and warnings of all stages


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """Read a run's `METRICS`, even while written."""
    return read_lines(run / METRICS)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file's JSON lines, if any, without those that are cut off."""
    rows: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue  # the last line of a run that is writing it, or one that a kill cut off
    return rows


def add_line(path: Path, row: dict[str, Any]) -> None:
    """Append a JSON line with the time."""
    with path.open("a", encoding="utf-8") as out:
        out.write(json.dumps({"at": round(time.time(), 2), **row}) + "\n")


def warn(run: Path, stage: str, text: str) -> None:
    """Print a warning and log it in the run's `METRICS`, without secrets in URLs."""
    text = public_text(text)
    add_line(run / METRICS, {"stage": stage, "warning": text})
    show_line = _shown[-1].print_line if _shown else _print
    show_line(f"warning: {stage}: {text}")


def note(text: str, left: int | None = None) -> None:
    """Show a text below the bar, if any.

    Args:
        left: undecided rows; the bar counts the others as done.
    """
    if _shown:
        _shown[-1].note(text, left)


@contextmanager
def bar(title: str, total: int | None, *, is_part: bool = False) -> Iterator[Advance]:
    """Show a bar over ``total`` rows, if known; yield ``advance(rows)``.

    Args:
        is_part: it is within another bar's work.
    """
    if _verbosity is Verbosity.QUIET or (_shown and not is_part):  # the outer bar is shown
        yield lambda _more: None
        return
    from flows.run.terminal import SafeConsole

    console = SafeConsole(stderr=True, highlight=True, markup=True, soft_wrap=False)
    shown: _Lines | Bar = _Lines(title)
    if console.is_terminal:
        from flows.run.bars import Bar

        shown = Bar(console, title, total)
    _shown.append(shown)
    try:
        yield shown.count
        if not is_part:
            shown.finish()
    finally:
        _shown.remove(shown)
        shown.stop()
