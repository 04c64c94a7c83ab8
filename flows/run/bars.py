"""A progress bar with a note below."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text


class Bar(Progress):
    """A bar over ``total`` rows, if known."""

    def __init__(self, console: Console, title: str, total: int | None) -> None:
        self._rows, self._note = 0, ""
        count = TextColumn("{task.completed:,.0f}/{task.fields[of]}")
        columns = (TextColumn("{task.description:<24}"), BarColumn(bar_width=16), count, TimeElapsedColumn())
        super().__init__(*columns, TimeRemainingColumn(), console=console)
        self._task = self.add_task(title, total=total, of="?" if total is None else f"{total:,}")
        self.start()

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        if self._note:
            yield Text(f"  {self._note}", no_wrap=True, overflow="ellipsis")

    def count(self, rows: int) -> None:
        """Count finished rows."""
        self._rows += rows
        self._show(self._rows)

    def note(self, text: str, left: int | None) -> None:
        """Show a text with its own time left; count all but ``left`` rows as done."""
        self._note, self.columns = text, self.columns[:4]
        total = self.tasks[0].total
        if left is not None and total is not None:
            self._show(total - left)

    def print_line(self, line: str) -> None:
        """Print a line above."""
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def finish(self) -> None:
        """Show that all is done."""
        task = self.tasks[0]
        if task.total is None:
            self.update(self._task, total=task.completed, of=f"{task.completed:,.0f}")

    def _show(self, rows: float) -> None:
        self.update(self._task, completed=max(self.tasks[0].completed, rows))
