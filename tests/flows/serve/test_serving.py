"""A service that is killed: whole or one of its processes; and a second one on the same set."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from curation.records import StoreError
from curation.storage.locks import is_locked
from flows.publish.versions import stored_versions
from flows.serve import serving
from flows.serve.serving import SERVICE, _served_once, serve_recipes
from tests.benchmarks.bench_service_kills import Service, published_bytes, victims
from tests.flows.conftest import Tiny
from tests.flows.serve.cron_chain import scheduled
from tests.waiting import wait_until


def test_a_set_is_served_once_at_a_time(tmp_path: Path) -> None:
    recipe, run = scheduled(tmp_path / "in"), tmp_path / "run"
    with (
        _served_once(run / SERVICE, "one", "key"),
        pytest.raises(StoreError, match=f"{run} is served already, by process {os.getpid()}"),
    ):
        serve_recipes([recipe], run)
    with _served_once(run / SERVICE, "two", "key"):
        assert json.loads((run / SERVICE / "service.json").read_text())["token"] == "two"


@pytest.mark.parametrize(("settled_s", "waits"), [(-1.0, [0, 0, 0]), (3600.0, [2.0, 4.0, 8.0])])
def test_children_that_lived_are_started_again_at_once(
    settled_s: float, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting longer each time kept the runs of killed children pending for a minute and more."""
    slept = list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == len(waits):
            raise KeyboardInterrupt

    monkeypatch.setattr(serving, "_serve_once", lambda _service: "killed")
    monkeypatch.setattr(serving, "SETTLED_S", settled_s)
    monkeypatch.setattr(serving.time, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        serving._keep_serving(serving.Service((), None, 0, "no such token", (), "key"))
    assert slept == waits


@pytest.mark.slow
def test_a_killed_run_resumes_by_itself(tmp_path: Path, tiny_run: Tiny) -> None:
    """Prefect's server is killed during the first run, every process during the second; the gate tries all kinds."""
    service = Service(tmp_path)
    try:
        for number, kind in enumerate(("Prefect's server", "the whole tree"), start=1):
            service.start()
            service.write_problems(number - 1)
            run = service.ask()
            wait_until(lambda run=run: service.state(run) == "RUNNING", service.command, tick_s=0.1)
            for process in victims(service, kind):
                process.kill()
            if kind == "the whole tree":
                assert service.command is not None
                service.command.wait()
                service.start()
            wait_until(lambda number=number: len(stored_versions(service.run)) == number, service.command, tick_s=0.2)
            wait_until(lambda: not is_locked(service.run), service.command, tick_s=0.1)
            if number == 1:
                assert published_bytes(service.run) == published_bytes(tiny_run.folder)
    finally:
        service.stop()
