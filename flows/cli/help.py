"""Lists commands by group in `goldilocks --help`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flows.cli.errors import Commands

GROUPS: Mapping[str, Sequence[str]] = {
    "Make a set": ("init", "plan", "run", "status"),
    "Look at it and decide": ("explain", "diff", "review", "page"),
    "Train on it": ("train", "evaluate", "ablate", "refresh", "serve"),
    "Pass it on": ("export", "publish"),
    "Check and look up": ("verify", "doctor", "settings"),
}
"""Every command is in one group."""


class GroupedCommands(Commands):
    """The commands of `goldilocks`, listed by group."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each group's commands."""
        width = max(map(len, self.list_commands(ctx)))
        limit = formatter.width - 6 - width
        for title, names in GROUPS.items():
            found = {name: self.get_command(ctx, name) for name in names}
            rows = [(name, command.get_short_help_str(limit)) for name, command in found.items() if command is not None]
            with formatter.section(title):
                formatter.write_dl(rows)
