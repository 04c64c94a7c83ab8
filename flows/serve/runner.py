"""Registers deployments in Prefect, runs what is due, and restarts lost runs.

A child of `flows.serve.serving`; every `LOOK_S` it starts missing work that did not fail by itself.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectNotFound, PrefectException
from prefect.runner import Runner
from prefect.states import Crashed

from curation.config import Recipe
from curation.records import GoldilocksError
from flows.run.recipe import load_recipe
from flows.serve.schedule import deployments, foreign_code, set_folder, start_phrase
from flows.serve.server import TOKEN, end_with_parent
from flows.serve.unfinished import unfinished

LOOK_S = 10.0  # seconds between searches for missing work
AGAIN_S, AGAIN_MOST_S = 30.0, 3600.0  # seconds until lost work is restarted, doubled up to the max
SEEN_RUNS = 50  # newest runs of a deployment that are read


def close_lost_runs(client: SyncPrefectClient, deployments: Sequence[Any]) -> int:
    """Mark an earlier service's runs as crashed; return their number."""
    begun = [StateType.RUNNING, StateType.PENDING, StateType.CANCELLING]
    wanted = {"deployment_id": {"any_": list(deployments)}, "state": {"type": {"any_": begun}}}
    lost = client.read_flow_runs(flow_run_filter=FlowRunFilter.model_validate(wanted))
    for run in lost:
        client.set_flow_run_state(run.id, Crashed(message="The service that ran it ended."), force=True)
    return len(lost)


def start_unfinished(client: SyncPrefectClient, recipe: Recipe, folder: Path, now: datetime) -> str | None:
    """Start the missing run of a set in a folder, if any, and return its flow."""
    work = unfinished(folder, recipe.schedule)
    if work is None:
        return None
    flow, parameters = work
    deployment = client.read_deployment_by_name(f"{flow}/{recipe.name}")
    runs = client.read_flow_runs(
        flow_run_filter=FlowRunFilter.model_validate({"deployment_id": {"any_": [deployment.id]}}),
        sort=FlowRunSort.EXPECTED_START_TIME_DESC,
        limit=SEEN_RUNS,
    )
    if not may_start([run for run in runs if parameters.items() <= run.parameters.items()], now):
        return None
    client.create_flow_run_from_deployment(deployment.id, parameters={**deployment.parameters, **parameters})
    return flow


def may_start(runs: Sequence[FlowRun], now: datetime) -> bool:
    """Return whether to start work, given its runs, newest first.

    Not if the newest is unfinished or failed by itself; else after a wait that each run doubles.
    """
    if not runs:
        return True
    newest = runs[0]
    if newest.state is None or not newest.state.is_final() or newest.state.type is StateType.FAILED:
        return False
    ended = newest.end_time or newest.state.timestamp
    return (now - ended).total_seconds() >= min(AGAIN_S * 2.0 ** (len(runs) - 1), AGAIN_MOST_S)


def _look(sets: Sequence[tuple[Recipe, Path]]) -> None:
    last_error = ""
    while True:
        time.sleep(LOOK_S)
        try:
            with get_client(sync_client=True) as client:
                for recipe, folder in sets:
                    if (flow := start_unfinished(client, recipe, folder, datetime.now(UTC))) is not None:
                        print(f"{recipe.name}: {flow} was not finished; it is started", flush=True)
            last_error = ""
        except (httpx.HTTPError, PrefectException, OSError) as error:
            if str(error) != last_error:
                last_error = str(error)
                print(f"what is unfinished could not be looked at: {error}", file=sys.stderr, flush=True)


def _drop_foreign(client: SyncPrefectClient, name: str) -> None:
    """Delete this name's deployment if it names code."""
    with suppress(ObjectNotFound):
        held = client.read_deployment_by_name(name)
        if foreign := foreign_code(held):
            print(f"  {name}: registered again, because its {', '.join(foreign)} named foreign code", flush=True)
            client.delete_deployment(held.id)


def serve_deployments(paths: Sequence[Path], out: Path | None) -> None:
    """Register the deployments, and run what is due."""
    registered = [deployment for path in paths for deployment in deployments(path, out)]
    print(f"serving at {os.environ['PREFECT_API_URL'].removesuffix('/api')}; Ctrl-C ends it", flush=True)
    for flow, settings in registered:
        print(f"  {flow.name}/{settings['name']}: {start_phrase(settings)}", flush=True)
    runner = Runner(pause_on_shutdown=False)  # else it would serve nothing next time
    with get_client(sync_client=True) as client:
        for flow, settings in registered:
            _drop_foreign(client, f"{flow.name}/{settings['name']}")
        known: list[Any] = [runner.add_flow(flow, **settings) for flow, settings in registered]
        if lost := close_lost_runs(client, known):
            print(f"  runs that an earlier service did not finish: {lost}; the next ones resume them", flush=True)
    sets = [(recipe, set_folder(recipe, out)) for recipe in map(load_recipe, paths)]
    threading.Thread(target=_look, args=(sets,), daemon=True).start()
    with suppress(KeyboardInterrupt):
        asyncio.run(runner.start())


if __name__ == "__main__":
    # a child of `flows.serve.serving`: run folder or "", recipes
    threading.Thread(target=end_with_parent, args=(os.environ.get(TOKEN),), daemon=True).start()
    try:
        serve_deployments([Path(recipe) for recipe in sys.argv[2:]], Path(sys.argv[1]) if sys.argv[1] else None)
    except GoldilocksError as error:
        sys.exit(f"goldilocks: {error}")
