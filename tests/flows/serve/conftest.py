"""A service of the tiny recipe, started once for all tests that talk to one."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from flows.serve.access import KEY_FILE, SERVER_KEY
from flows.serve.server import processes_of
from flows.serve.serving import SERVICE
from tests.flows.conftest import ROOT, free_port, write_tiny
from tests.waiting import PATIENCE_S, wait_until

SCHEDULE = '\n[schedule]\ncron = "*/5 * * * *"\ntrain = "train.toml"\nrounds = 2\n'


def scheduled(folder: Path, schedule: str = SCHEDULE) -> Path:
    """The tiny recipe with a schedule, and a trainer's recipe next to it."""
    recipe = write_tiny(folder)
    recipe.write_text(recipe.read_text() + schedule)
    (folder / "train.toml").write_text(
        'name = "stage"\nsteps = 1\nmodel = "student"\nmodels.student = { kind = "torch", model = "nowhere" }\n'
    )
    return recipe


def service_key(run: Path) -> str:
    """The key that a service's own processes have, as their owner may read it."""
    mark = f"{SERVER_KEY}=".encode()
    token = str(json.loads((run / SERVICE / "service.json").read_text())["token"])
    for process in processes_of(token):
        for variable in Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
            if variable.startswith(mark):
                return variable.removeprefix(mark).decode()
    raise AssertionError("no server has a key")


@dataclass(frozen=True)
class Service:
    """A service, its keys, and what it printed."""

    recipe: Path
    port: int
    run: Path
    log: Path
    key: str
    service_key: str

    def ask(self, method: str, path: str, body: Any = None, key: str | None = None, **headers: str) -> httpx.Response:
        if key is not None:
            headers["Authorization"] = f"Basic {base64.b64encode(key.encode()).decode()}"
        content = None if body is None else json.dumps(body)
        headers.setdefault("Content-Type", "application/json")
        address = f"http://127.0.0.1:{self.port}{path}"
        while True:
            reply = httpx.request(method, address, content=content, headers=headers, timeout=PATIENCE_S)
            if reply.status_code != 503:  # SQLite is busy: Prefect's own clients ask again, too
                return reply
            time.sleep(0.2)

    def deployment(self, flow: str) -> dict[str, Any]:
        held: dict[str, Any] = self.ask("GET", f"/api/deployments/name/{flow}/tiny", key=self.key).json()
        return held

    def start(self, flow: str, parameters: dict[str, Any]) -> str:
        """Start a run with the pages' key, whatever the schema permits; return its id."""
        body = {"parameters": parameters, "enforce_parameter_schema": False}
        made = self.ask("POST", f"/api/deployments/{self.deployment(flow)['id']}/create_flow_run", body, self.key)
        assert made.status_code == 201, made.text
        return str(made.json()["id"])

    def outcome(self, run: str) -> str:
        """What became of a run."""
        seen: dict[str, Any] = {}

        def ended() -> bool:
            seen.update(self.ask("GET", f"/api/flow_runs/{run}", key=self.key).json()["state"])
            return seen["type"] not in ("SCHEDULED", "PENDING", "RUNNING")

        wait_until(ended, tick_s=0.2)
        return f"{seen['type']}: {seen['message']}"


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[Service]:
    """A service of the tiny recipe without a cron; no file `pwned…` may be there at its end."""
    folder = tmp_path_factory.mktemp("served")
    recipe = scheduled(folder / "in", "\n[schedule]\n[refresh]\nerror_rate = 0.0125\n")
    port, run, log = free_port(), folder / "run", folder / "log"
    (folder / "home").mkdir()
    shutil.copy(empty_database, folder / "home" / "prefect.db")
    here = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    here |= {"PREFECT_HOME": str(folder / "home"), "PREFECT_RUNNER_POLL_FREQUENCY": "1", "PYTHONPATH": str(ROOT)}
    with log.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", "flows.cli", "serve", str(recipe), "--out", str(run), "--port", str(port)],
            cwd=folder,
            env=here,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=written,
            start_new_session=True,
        )
    try:
        wait_until(lambda: "refresh/tiny" in log.read_text(), process, tick_s=0.1)
        key = (run / SERVICE / KEY_FILE).read_text().strip()
        seen = Service(recipe, port, run, log, key, service_key(run))
        wait_until(lambda: "id" in seen.deployment("refresh"), process, tick_s=0.1)
        yield seen
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=PATIENCE_S)
    assert list(folder.rglob("pwned*")) == [], "an attack was executed"
    assert not (run / SERVICE / KEY_FILE).exists(), "the key outlives its service"
