"""Print texts of rows and files safely."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def written_out(text: str) -> str:
    r"""Return a text with escaped control characters (``\x1b``), except tabs and line ends."""
    return _CONTROL.sub(lambda sign: f"\\x{ord(sign[0]):02x}", text)


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
