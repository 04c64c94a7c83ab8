"""Progress bars with a note below."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text


class _Count(TextColumn):
    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        return Text(f"{task.completed:,.0f}/{'?' if task.total is None else f'{task.total:,.0f}'}")


class _Remaining(TimeRemainingColumn):
    """The time left by speed, unless a note has its own."""

    def render(self, task: Task) -> Text:
        return Text("") if task.fields["note"] else super().render(task)


class Bars(Progress):
    """A bar per task, with its field ``note`` below."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description:<24}"), BarColumn(bar_width=16), _Count(), TimeElapsedColumn())
        super().__init__(*columns, _Remaining(), console=console)

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.tasks:
            yield self.make_tasks_table([task])
            if task.fields["note"]:
                yield Text(f"  {task.fields['note']}", no_wrap=True, overflow="ellipsis")
