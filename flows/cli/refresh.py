"""`goldilocks refresh`: the set judged again by a new checkpoint, and what it came to."""

from __future__ import annotations

from pathlib import Path

from flows.pipelines.refresh import RefreshResult, refresh, summarise_refresh
from flows.run.terminal import SafeConsole
from flows.serve.server import user_api


def refresh_run(folder: Path, policy: Path, attempts: Path | None = None, *, accept: bool = False) -> RefreshResult:
    """Refresh the set of a run, print the result and return it; a flow where the user has a Prefect API."""
    if user_api() is not None:
        from flows.pipelines.under_prefect import refresh_flow

        result = refresh_flow.with_options(flow_run_name=folder.absolute().name)(
            folder, policy, attempts, accept=accept
        )
    else:
        result = refresh(folder, policy, attempts, accept=accept)
    console = SafeConsole()
    for line in summarise_refresh(result):
        console.print(line)
    return result
