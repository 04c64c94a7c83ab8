"""`goldilocks doctor`: which isolation this machine gives foreign code, as a table."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from curation.records import VerifierError
from curation.verify.sandbox import Sandbox
from curation.verify.sandbox.doctor import diagnose


def print_diagnosis() -> None:
    """Try every property of the isolation and print the results.

    Raises:
        VerifierError: some property does not hold, so foreign code is not safe here.
    """
    console = Console(markup=False, highlight=False, soft_wrap=True)
    with Sandbox(workers=1) as box:
        console.print(box.description)
    checks = diagnose()
    table = Table(box=None, pad_edge=False)
    for name in ("", "property", "tried", "what happened"):
        table.add_column(name, overflow="fold")
    for check in checks:
        table.add_row("holds" if check.ok else "FAILS", check.name, check.attempt, check.detail)
    console.print(table)
    failing = [check.name for check in checks if not check.ok]
    if failing:
        raise VerifierError(f"the isolation of this machine fails on: {', '.join(failing)}.")
    console.print(f"All {len(checks)} properties hold.")
