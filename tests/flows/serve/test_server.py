"""A Prefect API: the user's own, or one that ends with its starter; what a run leaves in it; processes and slots."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import httpx
import psutil
import pytest

from curation.records import GoldilocksError
from flows.serve.access import PAGE_KEY, SERVER_KEY
from flows.serve.flow_runs import gpu_slot, slots_folder
from flows.serve.server import TOKEN, end_processes, processes_of, quiet, user_api
from flows.serve.serving import serving_api
from tests.flows.conftest import KEYS, ROOT, TITLES, Tiny, free_port
from tests.waiting import PATIENCE_S, wait_until

SCRIPTS = tomllib.loads(Path(__file__).with_name("scripts.toml").read_text(encoding="utf-8"))


def children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


@pytest.mark.slow
def test_the_users_own_server_is_used_and_none_is_started(prefect_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", prefect_server)
    before = children()
    with serving_api(free_port(), KEYS) as (address, process):
        assert (address, process) == (prefect_server, None)
        assert user_api() == prefect_server
        assert children() == before
    assert httpx.get(f"{prefect_server}/health", timeout=PATIENCE_S).status_code == 200


@pytest.mark.slow
def test_automations_are_stored_while_the_server_reads_them_and_it_ends_with_its_starter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_database: Path
) -> None:
    """Prefect's own server blocks for ever there. That its starter ended, it sees by its standard input."""
    quiet()
    for name, value in (("PREFECT_HOME", str(tmp_path)), (SERVER_KEY, KEYS.service), (PAGE_KEY, KEYS.page)):
        monkeypatch.setenv(name, value)
    shutil.copy(empty_database, tmp_path / "prefect.db")
    port = free_port()
    automation = {
        "trigger": {"type": "event", "expect": ["x"], "posture": "Reactive", "threshold": 1, "within": 0},
        "actions": [{"type": "do-nothing"}],
    }
    headers = {"Authorization": f"Basic {base64.b64encode(KEYS.service.encode()).decode()}"}
    command = [sys.executable, "-c", SCRIPTS["slow_automations"], str(port)]
    with (
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE) as server,
        httpx.Client(base_url=f"http://127.0.0.1:{port}/api", headers=headers, timeout=60) as client,
    ):

        def is_up() -> bool:
            try:
                return client.get("/health").status_code == 200
            except httpx.TransportError:
                return False

        try:
            wait_until(is_up, server, tick_s=0.1)
            for number in range(4):
                assert client.post("/automations/", json={**automation, "name": str(number)}).status_code == 201
                time.sleep(0.7)
            assert server.stdin is not None
            server.stdin.close()
            assert server.wait(PATIENCE_S) == 0
        finally:
            server.kill()


@pytest.mark.slow
def test_a_server_that_cannot_start_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONHASHSEED", "nonsense")  # with which no interpreter starts
    before = children()
    with pytest.raises(GoldilocksError, match="Prefect's server ended"), serving_api(free_port(), KEYS):
        pass
    assert children() == before
    assert "PREFECT_API_URL" not in os.environ


@pytest.mark.slow
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


# --- processes, and slots of GPUs ------------------------------------------------------------------------------------


def leave_a_grandchild(token: str) -> dict[str, str]:
    environment = {**os.environ, TOKEN: token}
    subprocess.run([sys.executable, "-c", SCRIPTS["grandchild"]], env=environment, check=True)
    return environment


def test_a_process_whose_parent_is_gone_is_found_and_ended() -> None:
    leave_a_grandchild("test-token-1")
    wait_until(lambda: len(list(processes_of("test-token-1"))) == 1)  # a starting process has no environment yet
    assert list(processes_of("test-token")) == [], "a token is matched whole"
    assert end_processes("test-token-1") == 1
    wait_until(lambda: not list(processes_of("test-token-1")))


def test_who_sees_its_parent_end_ends_the_service() -> None:
    environment, pipes = leave_a_grandchild("test-token-2"), {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", SCRIPTS["leashed"]], cwd=ROOT, env=environment, **pipes) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == b"up\n"
        child.stdin.close()
        child.wait(PATIENCE_S)
    wait_until(lambda: not list(processes_of("test-token-2")))


def test_a_held_gpu_slot_is_waited_for_and_a_killed_holder_frees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with gpu_slot(2, print) as first, gpu_slot(2, print) as second:
        assert (first, second) == (0, 1)
    messages: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPTS["hold"]], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        def report(text: str) -> None:
            messages.append(text)
            holder.kill()

        with gpu_slot(1, report):
            assert (slots_folder() / "slot-0").is_dir()
    assert messages == [f"waits for the GPUs: all 1 slots are held, by processes {holder.pid}"]
