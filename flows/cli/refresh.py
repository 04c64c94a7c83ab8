"""`goldilocks refresh`."""

from __future__ import annotations

from pathlib import Path

from flows.pipelines.refresh import RefreshResult, refresh, summarise_refresh
from flows.run.terminal import SafeConsole
from flows.serve.server import user_api


def refresh_run(folder: Path, policy: Path, attempts: Path | None = None, *, accept: bool = False) -> RefreshResult:
    """Refresh a run's set and print the result; a flow run if the user has a Prefect API."""
    result: RefreshResult | None = None
    if user_api() is not None:
        from flows.refresh import refresh as refresh_flow

        made = refresh_flow.with_options(retries=0)(folder, policy, attempts, accept=accept)
        assert made is None or isinstance(made, RefreshResult)  # a state is what a deployment's run returns
        result = made
    if result is None:  # without a Prefect API, or the flow saw that this checkpoint was used before
        result = refresh(folder, policy, attempts, accept=accept)
    console = SafeConsole()
    for line in summarise_refresh(result):
        console.print(line)
    return result
