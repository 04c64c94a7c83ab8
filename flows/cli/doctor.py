"""`goldilocks doctor`: shows how this machine isolates foreign code."""

from __future__ import annotations

from rich.table import Table

from curation.verify.sandbox import Sandbox
from curation.verify.sandbox.doctor import diagnose, require, working_rungs
from flows.run.terminal import SafeConsole


def print_diagnosis() -> None:
    """Try every property of the isolation on each working rung.

    Raises:
        VerifierError: a property does not hold.
    """
    console = SafeConsole()
    with Sandbox(workers=1) as box:
        console.print(box.description)
    found = []
    for rung in working_rungs():
        checks = diagnose(rung)
        table = Table(box=None, pad_edge=False, title=f"rung {rung}", title_justify="left")
        for name in ("", "property", "by", "tried", "what happened"):
            table.add_column(name, overflow="fold")
        for check in checks:
            table.add_row("holds" if check.ok else "FAILS", check.name, check.by, check.attempt, check.detail)
        console.print(table)
        found += checks
    require(found)
    console.print(f"All {len(found)} properties hold.")
