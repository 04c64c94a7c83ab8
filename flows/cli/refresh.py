"""`goldilocks refresh`: the flow, with a Prefect API of its own where the user has none, and what it came to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from flows.serve.server import prefect_api

if TYPE_CHECKING:
    from flows.pipelines.refresh import RefreshResult


def refresh_run(folder: Path, policy: Path, attempts: Path | None = None) -> RefreshResult:
    """Refresh the set of a run, print the result and return it."""
    with prefect_api():
        from flows.pipelines.refresh import refresh, summarise_refresh

        result = refresh.with_options(flow_run_name=folder.absolute().name)(folder, policy, attempts)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    for line in summarise_refresh(result):
        console.print(line)
    return result
