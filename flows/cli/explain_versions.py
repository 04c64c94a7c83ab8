"""What `goldilocks explain` shows of a problem's way through the versions of its set.

A version records what was decided on the problem, on whose attempts, of which day, and whether it was judged again for
that version; nothing is decided here, the decisions are those that the versions keep.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
from rich.console import Console
from rich.markup import escape

from flows.publish.versions import RefreshedRun, Version, refreshed_run, scan_decisions, stored_versions
from flows.run.run_folder import Run


def print_versions(
    console: Console, run: Run, name: str, attempts: Callable[[Console, Run, str, str, str], None]
) -> None:
    """Print the problem's decision in each version, oldest first.

    Args:
        attempts: prints the attempts of a run's stage at a problem: console, run, stage, verifier, problem.
    """
    for version in stored_versions(run.folder):
        decisions = scan_decisions(run.folder, version.number).filter(pl.col("problem") == name).collect()
        if decisions.is_empty():
            continue
        row = decisions.row(0, named=True)
        refreshed = refreshed_run(run, version)
        reason = _reason_for_refresh(refreshed, name) if version.origin == "refresh" else None
        console.print(f"[bold]{_title(version)}[/bold]: {_decision_text(row)}", soft_wrap=True)
        console.print(f"  {_measurement_text(row)}{_refresh_text(version, reason)}", soft_wrap=True, markup=False)
        if reason is not None:
            attempts(console, refreshed, run.parts[-1], version.verifier, name)


def _title(version: Version) -> str:
    refreshed_with = f", refreshed with {escape(version.policy)}" if version.origin == "refresh" else ""
    return f"version {version.number} ({version.made_on}{refreshed_with})"


def _decision_text(row: dict[str, Any]) -> str:
    if row["published"]:
        return "in the set"
    if row["keep"]:
        return "kept, left out for the set's size"
    return f"dropped, {row['reason']}"


def _measurement_text(row: dict[str, Any]) -> str:
    if row["pass_rate"] is None:
        return f"no attempt of {row['policy']} could be judged, {row['measured_on']}"
    interval = f"95 % interval {row['low']:.2f} to {row['high']:.2f}"
    return (
        f"pass rate {row['pass_rate']:.3f} over {row['judged']} attempts of {row['policy']}, {row['measured_on']}, "
        f"{interval}"
    )


def _refresh_text(version: Version, reason: str | None) -> str:
    if version.origin != "refresh":
        return ""
    return f"; judged again ({reason})" if reason is not None else "; not judged again"


def _reason_for_refresh(run: RefreshedRun, name: str) -> str | None:
    """Return why the problem was judged again for this version; None where it was not."""
    for file in sorted((run.place / "chosen" / "why").glob("*.parquet")):
        rows = pl.scan_parquet(file, glob=False).filter(pl.col("problem") == name).collect()
        if not rows.is_empty():
            return str(rows["why"][0])
    return None
