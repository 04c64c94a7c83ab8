"""Runs commands, and lists them by group in `goldilocks --help`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typer.core import TyperGroup

from flows.cli.errors import failed

GROUPS: Mapping[str, Sequence[str]] = {
    "Make a set": ("init", "plan", "run", "status"),
    "Look at it and decide": ("explain", "diff", "review", "page"),
    "Train on it": ("train", "evaluate", "ablate", "refresh", "serve"),
    "Pass it on": ("export", "publish"),
    "Check and look up": ("verify", "doctor", "settings"),
}
"""Every command is in one group."""


class Commands(TyperGroup):
    """The commands of `goldilocks`, listed by group, with errors instead of click's "Aborted!"."""

    def invoke(self, ctx: Any) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except EOFError as error:
            raise SystemExit(failed(error)) from error

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each group's commands."""
        width = max(map(len, self.list_commands(ctx)))
        limit = formatter.width - 6 - width
        for title, names in GROUPS.items():
            found = {name: self.get_command(ctx, name) for name in names}
            rows = [(name, command.get_short_help_str(limit)) for name, command in found.items() if command is not None]
            with formatter.section(title):
                formatter.write_dl(rows)
