"""What `goldilocks explain` shows of a problem's way through the versions of its set.

Each version says what was decided on the problem, on whose attempts, of which day, and whether it was judged again for
that version; nothing is decided here, the decisions are those that the versions keep.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
from rich.console import Console
from rich.markup import escape

from flows.publish.versions import RefreshedRun, Version, decisions_of, refreshed_run, stored_versions
from flows.run.run_folder import Run


def print_versions(
    console: Console, run: Run, name: str, attempts: Callable[[Console, Run, str, str, str], None]
) -> None:
    """The problem's decision in each version, oldest first.

    Args:
        attempts: prints the attempts of a run's stage at a problem: console, run, stage, verifier, problem.
    """
    for version in stored_versions(run.folder):
        found = decisions_of(run.folder, version.number).filter(pl.col("problem") == name)
        if found.is_empty():
            continue
        row = found.row(0, named=True)
        later = refreshed_run(run, version)
        why = _why(later, name) if version.origin == "refresh" else None
        console.print(f"[bold]{_title(version)}[/bold]: {_fate(row)}", soft_wrap=True)
        console.print(f"  {_measured(row)}{_again(version, why)}", soft_wrap=True, markup=False)
        if why is not None:
            attempts(console, later, run.parts[-1], version.verifier, name)


def _title(version: Version) -> str:
    by = f", refreshed with {escape(version.policy)}" if version.origin == "refresh" else ""
    return f"version {version.number} ({version.made_on}{by})"


def _fate(row: dict[str, Any]) -> str:
    if row["published"]:
        return "in the set"
    if row["keep"]:
        return "kept, left out for the set's size"
    return f"dropped, {row['reason']}"


def _measured(row: dict[str, Any]) -> str:
    if row["pass_rate"] is None:
        return f"no attempt of {row['policy']} could be judged, {row['measured_on']}"
    interval = f"95 % interval {row['low']:.2f} to {row['high']:.2f}"
    return (
        f"pass rate {row['pass_rate']:.3f} over {row['judged']} attempts of {row['policy']}, {row['measured_on']}, "
        f"{interval}"
    )


def _again(version: Version, why: str | None) -> str:
    if version.origin != "refresh":
        return ""
    return f"; judged again ({why})" if why is not None else "; not judged again"


def _why(run: RefreshedRun, name: str) -> str | None:
    """Return why the problem was judged again for the version; None where it was not."""
    for file in sorted((run.place / "chosen" / "why").glob("*.parquet")):
        found = pl.scan_parquet(file, glob=False).filter(pl.col("problem") == name).collect()
        if not found.is_empty():
            return str(found["why"][0])
    return None
