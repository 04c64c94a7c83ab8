"""A Prefect API: the user's own, or one that ends with its starter; and what a run leaves in it."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

from curation.records import GoldilocksError
from flows.serve.access import PAGE_KEY, SERVER_KEY
from flows.serve.server import quiet, user_api
from flows.serve.serving import serving_api
from tests.flows.conftest import KEYS, ROOT, TITLES, Tiny, free_port
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.slow


def children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=PATIENCE_S) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


def test_the_users_own_server_is_used_and_none_is_started(prefect_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", prefect_server)
    before = children()
    with serving_api(free_port(), KEYS) as (address, process):
        assert (address, process) == (prefect_server, None)
        assert user_api() == prefect_server
        assert children() == before
    assert answers(prefect_server)


SLOW_AUTOMATIONS = """
import asyncio, sys
from flows.serve.access import PAGE_KEY, SERVER_KEY
from flows.serve.server import _serve
from prefect.server.events import triggers

async def slow(session, real=triggers.read_automation_state_snapshot):
    await asyncio.sleep(3)
    return await real(session)

triggers.read_automation_state_snapshot = slow
_serve(int(sys.argv[1]), [])
"""


def test_automations_are_stored_while_the_server_reads_them_and_it_ends_with_its_starter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_database: Path
) -> None:
    """Prefect's own server blocks for ever there. That its starter ended, it sees by its standard input."""
    import httpx

    quiet()
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    shutil.copy(empty_database, tmp_path / "prefect.db")
    monkeypatch.setenv(SERVER_KEY, KEYS.service)
    monkeypatch.setenv(PAGE_KEY, KEYS.page)
    port = free_port()
    automation = {"trigger": {"type": "event", "expect": ["x"], "posture": "Reactive", "threshold": 1, "within": 0}}
    command = [sys.executable, "-c", SLOW_AUTOMATIONS, str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE) as server:
        try:
            wait_until(lambda: answers(f"http://127.0.0.1:{port}/api"), server, tick_s=0.1)
            headers = {"Authorization": f"Basic {base64.b64encode(KEYS.service.encode()).decode()}"}
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
                for number in range(4):
                    made = {**automation, "name": str(number), "actions": [{"type": "do-nothing"}]}
                    assert client.post("/api/automations/", json=made).status_code == 201
                    time.sleep(0.7)
            assert server.stdin is not None
            server.stdin.close()
            assert server.wait(PATIENCE_S) == 0
        finally:
            server.kill()


def test_a_server_that_cannot_start_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONHASHSEED", "nonsense")  # with which no interpreter starts
    before = children()
    with pytest.raises(GoldilocksError, match="Prefect's server ended"), serving_api(free_port(), KEYS):
        pass
    assert children() == before
    assert "PREFECT_API_URL" not in os.environ


def test_the_run_its_tasks_and_its_artifacts_are_stored(tiny_copy: Tiny, under_prefect: str) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey, FlowRunFilter

    (tiny_copy.folder / "run.json").unlink()  # the folder of `tiny` would be refused to another recipe
    assert tiny_copy.run("name=a.b_c-1..x").status == 0
    with get_client(sync_client=True) as client:
        key = ArtifactFilterKey(any_=["card-a-b-c-1--x", "funnel-a-b-c-1--x"])
        found = client.read_artifacts(artifact_filter=ArtifactFilter(key=key))
        table, card = sorted(found, key=lambda artifact: str(artifact.type), reverse=True)
        run = client.read_flow_run(card.flow_run_id)
        flow = client.read_flow(run.flow_id)
        of_run = FlowRunFilter(id={"any_": [run.id]})
        # task runs are written down later
        wait_until(lambda: len(client.read_task_runs(flow_run_filter=of_run)) == len(TITLES), tick_s=0.1)
    assert flow.name == "curate-math"
    assert run.state is not None
    assert run.state.is_completed()
    assert (table.type, card.type) == ("table", "markdown")
    assert '"stage": "Curated set"' in str(table.data)
    shown, whole = str(card.data).split("\n"), (tiny_copy.folder / "curated" / "README.md").read_text().split("\n")
    assert set(shown) <= set(whole)
    assert len(shown) > 30
    assert tiny_copy.run("name=a.b_c-1..x").status == 0
    with get_client(sync_client=True) as client:
        assert len(client.read_artifacts(artifact_filter=ArtifactFilter(key=key))) == 2, "nothing new, nothing shown"
