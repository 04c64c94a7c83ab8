"""Print texts of rows and files safely."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from flows.run.safe_text import written_out


def echo(text: object) -> None:
    """Print a text."""
    typer.echo(written_out(str(text)))


class SafeConsole(Console):
    """A console without markup, colours, wrapping or control characters."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"highlight": False, "markup": False, "soft_wrap": True, **settings})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=written_out(segment.text))
