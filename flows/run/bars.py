"""Progress bars for a terminal: what is done in one line of 80 columns, a note in the next."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text


class _Count(TextColumn):
    """Rows done of all rows."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        return Text(f"{task.completed:,.0f}/{'?' if task.total is None else f'{task.total:,.0f}'}")


class _Remaining(TimeRemainingColumn):
    """The time left at the speed so far, if no note reports a better estimate."""

    def render(self, task: Task) -> Text:
        return Text("") if task.fields["note"] else super().render(task)


class Bars(Progress):
    """A bar per task. The field ``note`` of a task is shown below it, cut at the edge of the terminal."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description:<24}"), BarColumn(bar_width=16), _Count(), TimeElapsedColumn())
        super().__init__(*columns, _Remaining(), console=console)

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.tasks:
            yield self.make_tasks_table([task])
            if task.fields["note"]:
                yield Text(f"  {task.fields['note']}", no_wrap=True, overflow="ellipsis")
