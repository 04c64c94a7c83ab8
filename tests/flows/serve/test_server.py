"""A Prefect API for the length of a run: the user's own, or a temporary one; and what a run leaves in it."""

from __future__ import annotations

import contextlib
import os
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

from curation.records import GoldilocksError
from flows.serve.server import QUIET, prefect_api, quiet
from tests.flows.conftest import Tiny
from tests.waiting import PATIENCE_S, wait_until


def children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=PATIENCE_S) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


def test_the_users_own_server_is_used_and_none_is_started(prefect_server: str) -> None:
    before = children()
    with prefect_api() as address:
        assert address == prefect_server == os.environ["PREFECT_API_URL"]
        assert children() == before
    assert os.environ["PREFECT_API_URL"] == prefect_server
    assert answers(prefect_server)


def test_without_one_a_server_lives_as_long_as_the_block(prefect_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from prefect.settings import get_current_settings

    monkeypatch.delenv("PREFECT_API_URL")
    before, environment = children(), dict(os.environ)
    with contextlib.suppress(ZeroDivisionError), prefect_api() as address:  # a run that fails ends it as well
        assert os.environ["PREFECT_API_URL"] == address != prefect_server
        assert address.startswith("http://127.0.0.1:")
        assert answers(address)
        assert get_current_settings().api.url == address, "Prefect asks it, though it had read another server's address"
        (server,) = children() - before
        _ = 1 / 0
    assert not server.is_running()
    assert not answers(address)
    assert dict(os.environ) == environment


def test_a_server_that_cannot_start_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONHASHSEED", "nonsense")  # with which no interpreter starts
    before = children()
    with pytest.raises(GoldilocksError, match="Prefect's temporary server ended with status"), prefect_api():
        pass
    assert children() == before
    assert "PREFECT_API_URL" not in os.environ


def test_the_users_own_settings_of_prefect_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in QUIET:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PREFECT_LOGGING_LEVEL", "DEBUG")
    quiet()
    assert {name: os.environ[name] for name in QUIET} == {**QUIET, "PREFECT_LOGGING_LEVEL": "DEBUG"}
    for name in QUIET:
        monkeypatch.delenv(name)


def test_the_run_its_tasks_and_its_artifacts_are_stored(tiny_copy: Tiny, prefect_server: str) -> None:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey, FlowRunFilter

    (tiny_copy.folder / "run.json").unlink()  # the folder of `tiny` would be refused to another recipe
    assert tiny_copy.run("name=a.b_c-1..x").status == 0
    with SyncPrefectClient(prefect_server) as client:
        key = ArtifactFilterKey(any_=["card-a-b-c-1--x", "funnel-a-b-c-1--x"])
        found = client.read_artifacts(artifact_filter=ArtifactFilter(key=key))
        table, card = sorted(found, key=lambda artifact: str(artifact.type), reverse=True)
        run = client.read_flow_run(card.flow_run_id)
        flow = client.read_flow(run.flow_id)
        of_run = FlowRunFilter(id={"any_": [run.id]})
        wait_until(lambda: len(client.read_task_runs(flow_run_filter=of_run)) >= 12, tick_s=0.1)  # written down later
        tasks = client.read_task_runs(flow_run_filter=of_run)
    assert flow.name == "curate-math"
    assert run.state is not None
    assert run.state.is_completed()
    assert len(tasks) == 12
    assert (table.type, card.type) == ("table", "markdown")
    assert '"stage": "Curated set"' in str(table.data)
    assert str(card.data).strip().startswith("# ")
    shown, whole = (
        text.split("\n") for text in (str(card.data), (tiny_copy.folder / "curated" / "README.md").read_text())
    )
    assert set(shown) <= set(whole)
    assert len(shown) > 30
