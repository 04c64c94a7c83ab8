"""Prefect's own runner with the recipes' deployments, and every `LOOK_S` a look for runs that were lost.

A run that was killed has crashed; the newest run of a deployment is scheduled again if it has crashed, and resumes in
its folder. Runs that an earlier service left as running have crashed, too. A stage of training or a refresh that is
missing in a set's folder, and for which there is no run because its event was lost, gets one.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from curation.records import GoldilocksError
from flows.serve.processes import REFUSED, TOKEN, end_with_parent
from flows.serve.unfinished import Work, unfinished

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun

    from curation.config import Recipe

LOOK_S = 5.0

AGAIN_S, AGAIN_MAX_S = 30.0, 3600.0
"""Seconds that a run which crashed twice waits; doubled for each crash more, up to the maximum."""

SEEN_RUNS = 50
"""Newest runs of a deployment that are compared with missing work."""


def close_lost_runs(client: SyncPrefectClient, deployments: Sequence[UUID]) -> int:
    """Mark the runs that an earlier service left as running as crashed, or cancelled, and return their number."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterDeploymentId, FlowRunFilterState
    from prefect.client.schemas.objects import StateType
    from prefect.states import Cancelled, Crashed

    started = [StateType.RUNNING, StateType.PENDING, StateType.CANCELLING]
    lost = client.read_flow_runs(
        flow_run_filter=FlowRunFilter(
            deployment_id=FlowRunFilterDeploymentId(any_=list(deployments)),
            state=FlowRunFilterState.model_validate({"type": {"any_": started}}),
        )
    )
    for run in lost:
        end = Cancelled if run.state_type is StateType.CANCELLING else Crashed
        client.set_flow_run_state(run.id, end(message="The service that ran it ended."), force=True)
    return len(lost)


def rerun_crashed(client: SyncPrefectClient, deployment: UUID, now: datetime) -> str | None:
    """Schedule the newest run of a deployment again if it has crashed, and return its name then."""
    from prefect.states import AwaitingRetry

    newest = next(iter(_runs_of(client, deployment, now, 1)), None)
    if newest is None or newest.state is None or not newest.state.is_crashed():
        return None
    at = newest.state.timestamp + timedelta(seconds=wait_before(newest.run_count))
    client.set_flow_run_state(newest.id, AwaitingRetry(scheduled_time=max(at, now)), force=True)
    return newest.name


def start_unfinished(client: SyncPrefectClient, recipe: Recipe, folder: Path, now: datetime) -> Work | None:
    """Start the missing work of a set if no run was to do it; return the work that was started."""
    work = unfinished(folder, recipe.schedule)
    if work is None:
        return None
    deployment = client.read_deployment_by_name(f"{work.flow}/{recipe.name}")
    runs = _runs_of(client, deployment.id, now, SEEN_RUNS)
    if any(work.parameters.items() <= run.parameters.items() for run in runs):
        return None
    client.create_flow_run_from_deployment(deployment.id, parameters={**deployment.parameters, **work.parameters})
    return work


def wait_before(runs: int) -> float:
    """Return the seconds between the crash of a run that was started ``runs`` times and its next start."""
    return min(AGAIN_S * 2.0 ** (runs - 2), AGAIN_MAX_S) if runs > 1 else 0.0


def _runs_of(client: SyncPrefectClient, deployment: UUID, now: datetime, limit: int) -> list[FlowRun]:
    """Return the newest runs of a deployment that are due, the newest first."""
    from prefect.client.schemas.filters import (
        FlowRunFilter,
        FlowRunFilterDeploymentId,
        FlowRunFilterExpectedStartTime,
    )
    from prefect.client.schemas.sorting import FlowRunSort

    return client.read_flow_runs(
        flow_run_filter=FlowRunFilter(
            deployment_id=FlowRunFilterDeploymentId(any_=[deployment]),
            expected_start_time=FlowRunFilterExpectedStartTime(before_=now),
        ),
        sort=FlowRunSort.EXPECTED_START_TIME_DESC,
        limit=limit,
    )


def _look(deployments: Sequence[UUID], sets: Sequence[tuple[Recipe, Path]]) -> None:
    """Start lost runs again, for as long as the process lives; report an error once, and try again at the next look."""
    import httpx
    from prefect.client.orchestration import get_client
    from prefect.exceptions import PrefectException

    reported = ""
    while True:
        time.sleep(LOOK_S)
        try:
            with get_client(sync_client=True) as client:
                for deployment in deployments:
                    if (name := rerun_crashed(client, deployment, datetime.now(UTC))) is not None:
                        print(f"{name}: the run was lost; it starts again", flush=True)
                for recipe, folder in sets:
                    work = start_unfinished(client, recipe, folder, datetime.now(UTC))
                    if work is not None:
                        print(f"{recipe.name}: {work.flow} was not started by its event; it starts now", flush=True)
            reported = ""
        except (httpx.HTTPError, PrefectException, OSError) as error:
            if str(error) != reported:
                reported = str(error)
                print(f"lost runs could not be looked for: {error}", file=sys.stderr, flush=True)


def serve_deployments(paths: Sequence[Path], out: Path | None, address: str) -> None:
    """Register the recipes' deployments, and run what falls due until interrupted."""
    import asyncio

    from prefect.client.orchestration import get_client
    from prefect.runner import Runner

    from flows.run.recipe import load_recipe
    from flows.serve.schedule import deployments, set_folder

    sets = [(recipe, set_folder(recipe, out)) for recipe in map(load_recipe, paths)]
    served = [one for path in paths for one in deployments(path, out)]
    print(f"serving at {address.removesuffix('/api')}; Ctrl-C ends it", flush=True)
    for one in served:
        print(f"  {one.flow.name}/{one.arguments['name']}: {one.starts}", flush=True)
    runner: Any = Runner(pause_on_shutdown=False)  # else it would serve nothing next time
    known: list[UUID] = [runner.add_flow(one.flow, **one.arguments) for one in served]
    with get_client(sync_client=True) as client:
        if lost := close_lost_runs(client, known):
            print(f"  runs that an earlier service left unfinished: {lost}", flush=True)
    threading.Thread(target=_look, args=(known, sets), daemon=True).start()
    with suppress(KeyboardInterrupt):
        asyncio.run(runner.start())


def main(arguments: Sequence[str]) -> int:
    """Serve, as a child of `flows.serve.serving`: the address, the run folder or "", and the recipes."""
    address, out, *recipes = arguments
    threading.Thread(target=end_with_parent, args=(os.environ.get(TOKEN),), daemon=True).start()
    try:
        serve_deployments([Path(recipe) for recipe in recipes], Path(out) if out else None, address)
    except GoldilocksError as error:
        print(f"goldilocks: {error}", file=sys.stderr)
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
