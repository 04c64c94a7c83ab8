"""Show progress on standard error, as bars or lines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.public_urls import public_text
from flows.run.safe_text import written_out

if TYPE_CHECKING:
    from rich.console import Group

Advance = Callable[[int], None]


_is_quiet = False


def set_quiet(is_quiet: bool) -> None:
    """Set whether warnings alone are printed."""
    global _is_quiet
    _is_quiet = is_quiet


def _print(line: str) -> None:
    print(written_out(line), file=sys.stderr, flush=True)


def print_line(text: str) -> None:
    """Print a line unless quiet."""
    if not _is_quiet:
        _print(text)


NOTE_S = 60.0  # seconds between notes without a terminal


class _Bar:
    """A stage's progress: on a terminal a bar with a note below, else a note at times and a line at the end."""

    def __init__(self, title: str, total: int | None) -> None:
        from rich.live import Live
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        from flows.run.terminal import SafeConsole

        count = TextColumn("{task.completed:,.0f}/{task.fields[of]}")
        columns = (TextColumn("{task.description:<24}"), BarColumn(bar_width=16), count, TimeElapsedColumn())
        self._progress = Progress(*columns, TimeRemainingColumn(), disable=True)
        self._task = self._progress.add_task(title, total=total, of="?" if total is None else f"{total:,}")
        self._title, self._total, self._rows, self._note = title, total, 0, ""
        self._begun = self._noted = time.monotonic()
        console = SafeConsole(stderr=True, highlight=True, markup=True, soft_wrap=False)
        self._live = Live(console=console, get_renderable=self._shown) if console.is_terminal else None
        if self._live is not None:
            self._live.start()

    def _shown(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        notes = [Text(f"  {self._note}", no_wrap=True, overflow="ellipsis")] if self._note else []
        return Group(self._progress.make_tasks_table(self._progress.tasks), *notes)

    def _complete(self, rows: int) -> None:
        self._progress.update(self._task, completed=max(self._progress.tasks[0].completed, rows))

    def count(self, rows: int) -> None:
        """Count finished rows."""
        self._rows += rows
        self._complete(self._rows)

    def note(self, text: str, left: int | None) -> None:
        """Show a text with its own time left; count all but ``left`` rows as done."""
        self._note, self._progress.columns = text, self._progress.columns[:4]
        if left is not None and self._total is not None:
            self._complete(self._total - left)
        if self._live is None and time.monotonic() - self._noted > NOTE_S:
            self._noted = time.monotonic()
            _print(f"{self._title:<24} {text}")

    def print_line(self, line: str) -> None:
        """Print a line above."""
        if self._live is None:
            _print(line)
        else:
            self._live.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def finish(self) -> None:
        """Show that all is done."""
        if self._live is None:
            _print(f"{self._title:<24} {self._rows:>9,} rows  {time.monotonic() - self._begun:6.1f} s")
        elif self._total is None:
            self._progress.update(self._task, total=self._rows, of=f"{self._rows:,}")

    def stop(self) -> None:
        if self._live is not None:
            self._live.stop()


_shown: list[_Bar] = []  # the shown bars, innermost last
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
    if _is_quiet or (_shown and not is_part):  # the outer bar is shown
        yield lambda _more: None
        return
    shown = _Bar(title, total)
    _shown.append(shown)
    try:
        yield shown.count
        if not is_part:
            shown.finish()
    finally:
        _shown.remove(shown)
        shown.stop()
