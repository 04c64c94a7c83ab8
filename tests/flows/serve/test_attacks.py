"""Attacks on a service: without a key, from foreign names and origins, and through the API with every key there is.

One service is shared by all of them. Each attack that would run something writes a file, which must not be there.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import websockets

from flows.serve.access import KEY_FILE
from flows.serve.pins import CODE, Pins
from flows.serve.processes import processes_of
from flows.serve.server import PAGE
from flows.serve.serving import SERVICE
from tests.flows.conftest import ROOT, Tiny, free_port
from tests.flows.serve.cron_chain import SERVE, scheduled, service_key
from tests.waiting import PATIENCE_S, wait_until

SHELL = [{"prefect.deployments.steps.run_shell_script": {"script": "touch pwned"}}]


@dataclass(frozen=True)
class Attacked:
    """A service, its keys, and what it printed."""

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
        """Start a run with the pages' key, whatever the schema says of its parameters; return its id."""
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


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """A service of the tiny recipe with all three deployments, and no cron."""
    folder = tmp_path_factory.mktemp("attacked")
    recipe = scheduled(folder / "in", '\n[schedule]\ntrain = "train.toml"\n')
    port, run, log = free_port(), folder / "run", folder / "log"
    here = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    here |= {"PREFECT_HOME": str(folder / "home"), "PREFECT_RUNNER_POLL_FREQUENCY": "1", "PYTHONPATH": str(ROOT)}
    with log.open("wb") as written:
        service = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(recipe), str(run), str(port)],
            cwd=folder,
            env=here,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=written,
            start_new_session=True,
        )
    try:
        wait_until(lambda: "refresh/tiny" in log.read_text(), service, tick_s=0.1)
        key = (run / SERVICE / KEY_FILE).read_text().strip()
        seen = Attacked(port, run, log, key, service_key(run))
        wait_until(lambda: "id" in seen.deployment("refresh"), service, tick_s=0.1)
        yield seen
    finally:
        os.killpg(service.pid, signal.SIGTERM)
        service.wait(timeout=PATIENCE_S)
    assert list(folder.rglob("pwned*")) == [], "an attack was executed"
    assert not (run / SERVICE / KEY_FILE).exists(), "the key outlives its service"


def test_nothing_is_answered_without_a_key(attacked: Attacked) -> None:
    deployment = attacked.deployment("refresh")["id"]
    asked = [
        ("GET", f"/api/deployments/{deployment}", None),
        ("PATCH", f"/api/deployments/{deployment}", {"pull_steps": SHELL}),
        ("POST", f"/api/deployments/{deployment}/create_flow_run", {}),
        ("POST", "/api/flow_runs/filter", {}),
        ("POST", "/api/automations/", {}),
        ("GET", "/api/admin/settings", None),
        ("GET", "/api/docs", None),
        ("GET", "/api//health", None),
        ("POST", "/api/health", {}),
        ("GET", f"{PAGE}/r/run/rows", None),
        ("POST", f"{PAGE}/r/run/review/verdict", {}),
    ]
    for method, path, body in asked:
        for key in (None, "guess", f"{attacked.key}x"):
            assert attacked.ask(method, path, body, key).status_code == 401, path
    assert attacked.deployment("refresh")["pull_steps"] in (None, [])
    assert attacked.ask("GET", "/api/health").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:4200", "127.0.0.1.evil.example", "localhost@evil", "[", ""]
)
def test_a_foreign_host_is_refused(attacked: Attacked, host: str) -> None:
    """A name that an attacker points at this machine (DNS rebinding)."""
    for path in ("/", "/api/health", "/api/ready", f"{PAGE}/", "/ui-settings", "/docs"):
        assert attacked.ask("GET", path, key=attacked.service_key, Host=host).status_code in (400, 403), path


def test_a_foreign_origin_is_refused(attacked: Attacked) -> None:
    origins = ["http://evil.example", "null", "http://127.0.0.1:9", "https://localhost", f"http://evil:{attacked.port}"]
    for origin in origins:
        for method in ("GET", "POST", "OPTIONS"):
            asked = {"Origin": origin, "Access-Control-Request-Method": "PATCH"}
            reply = attacked.ask(method, "/api/flow_runs/filter", key=attacked.service_key, **asked)
            assert reply.status_code == 403
            assert "access-control-allow-origin" not in reply.headers
    for own in (f"http://127.0.0.1:{attacked.port}", f"http://localhost:{attacked.port}"):
        reply = attacked.ask("POST", "/api/flow_runs/filter", {}, attacked.key, Origin=own)
        assert reply.status_code == 200
        assert reply.headers["access-control-allow-origin"] == own
        reply = attacked.ask("POST", "/api/flow_runs/filter", {}, Origin=own)
        assert (reply.status_code, reply.headers["access-control-allow-origin"]) == (401, own), (
            "a page asks for the key"
        )


@pytest.mark.parametrize(
    "path", ["/api/events/in", "/api/events/out", "/api/logs/out", "/api/task_runs/subscriptions/scheduled"]
)
def test_a_web_socket_wants_a_key_and_no_foreign_origin(attacked: Attacked, path: str) -> None:
    async def enters(token: str | None, **headers: str) -> bool:
        given: Any = {"subprotocols": ["prefect"] if token is not None else None, "additional_headers": headers}
        try:
            async with websockets.connect(f"ws://127.0.0.1:{attacked.port}{path}", **given) as socket:
                await socket.send(json.dumps({"type": "auth", "token": token}))
                return bool(json.loads(await socket.recv())["type"] == "auth_success")
        except websockets.WebSocketException:
            return False

    evil = "http://evil.example"
    assert not asyncio.run(enters(None))
    assert not asyncio.run(enters("guess"))
    assert not asyncio.run(enters(attacked.service_key, Origin=evil))
    assert asyncio.run(enters(attacked.service_key))
    assert asyncio.run(enters(attacked.key)) == path.endswith("/out"), "the pages' key listens, and sends nothing"


def test_the_pages_key_shows_and_starts_and_changes_nothing(attacked: Attacked) -> None:
    deployment = attacked.deployment("refresh")["id"]
    run = attacked.start("refresh", {"folder": "/elsewhere", "policy": "/elsewhere/model"})
    stored = {"type": "COMPLETED", "data": {"type": "reference", "storage_key": "/tmp/evil.pickle"}}
    allowed = [
        ("GET", f"/api/deployments/{deployment}", None),
        ("POST", "/api/deployments/filter", {}),
        ("POST", "/api/ui/flow_runs/history", {"sort": "ID_DESC", "limit": 1, "offset": 0}),
        ("POST", "/api/events/filter", {}),
        ("POST", f"/api/deployments/{deployment}/pause_deployment", None),
        ("POST", f"/api/deployments/{deployment}/resume_deployment", None),
    ]
    refused = [
        ("PATCH", f"/api/deployments/{deployment}", {"pull_steps": SHELL}),
        ("DELETE", f"/api/deployments/{deployment}", None),
        ("POST", "/api/deployments/", {"name": "x", "flow_id": deployment, "entrypoint": "evil.py:flow"}),
        ("POST", f"/api/flow_runs/{run}/set_state", {"state": stored}),
        ("POST", f"/api/flow_runs/{run}/set_state", {"state": {**stored, "type": "SCHEDULED"}}),
        ("POST", f"/api/deployments/{deployment}/create_flow_run", {"state": {**stored, "type": "SCHEDULED"}}),
        ("POST", "/api/flow_runs/bulk_set_state", {"state": stored}),
        ("PATCH", f"/api/flow_runs/{run}", {"parameters": {"policy": "/tmp/evil.toml"}}),
        ("POST", "/api/automations/", {}),
        ("POST", "/api/block_documents/", {}),
        ("POST", "/api/block_documents/filter", {"include_secrets": True}),
        ("GET", "/api/block_documents/x?include_secrets=true", None),
        ("POST", "/api/events", [{"event": "goldilocks.checkpoint"}]),
        ("POST", "/api/admin/database/clear", {"confirm": True}),
        ("POST", "/api/work_pools/", {}),
        ("POST", "/api/variables/", {}),
        ("POST", f"/api/deployments/{deployment}/create_flow_run", {"name": "x" * (1 << 21)}),
    ]
    assert [attacked.ask(*one, attacked.key).status_code for one in refused] == [403] * len(refused)
    assert [attacked.ask(*one, attacked.key).is_success for one in allowed] == [True] * len(allowed)
    assert attacked.outcome(run).startswith("CANCELLED: refused: folder = /elsewhere")


def test_overrides_of_a_served_run_name_no_plug_in(attacked: Attacked) -> None:
    """A plug-in runs with the rights of the service, so only the recipe that was served may name one."""
    evil, pwned = attacked.run.parent / "plug_in.py", attacked.run.parent / "pwned-by-plug-in"
    evil.write_text(f"open({str(pwned)!r}, 'w')\nRULE = None\n")
    own = {"recipe": str(attacked.run.parent / "in" / "tiny.toml"), "out": str(attacked.run)}
    run = attacked.start("curate-math", {**own, "overrides": [f"statements.rules=['{evil}:RULE']"]})
    assert attacked.outcome(run).startswith("CANCELLED: refused: overrides = ")


@pytest.mark.slow
def test_the_runner_refuses_what_the_api_was_made_to_name(attacked: Attacked) -> None:
    """With the service's own key, as if the database were the attacker's."""
    evil, pwned = attacked.run.parent / "evil.py", attacked.run.parent / "pwned"
    evil.write_text(f"open({str(pwned)!r}, 'w')\nfrom prefect import flow\n@flow\ndef go(**_): ...\n")
    tampered: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
        ("curate-math", {"pull_steps": SHELL, "job_variables": {"env": {"LD_PRELOAD": "/tmp/x"}}}, {}, CODE[0]),
        ("refresh", {"entrypoint": f"{evil}:go"}, {"policy": f"{attacked.run}/training/1/model"}, "entrypoint of"),
    ]
    started = []
    for flow, change, parameters, expected in tampered:
        path = f"/api/deployments/{attacked.deployment(flow)['id']}"
        assert attacked.ask("PATCH", path, change, attacked.service_key).status_code == 204
        started.append((attacked.start(flow, parameters), expected))
    for run, expected in started:
        assert attacked.outcome(run).startswith(f"CANCELLED: refused: {expected}")
    assert "refused: pull_steps, job_variables of the deployment changed" in attacked.log.read_text()


def test_only_the_services_own_parameters_are_taken(tiny_run: Tiny, tmp_path: Path) -> None:
    folder = tiny_run.folder  # with one version
    curation = Pins({"recipe": tiny_run.recipe, "out": folder})
    training = Pins({"folder": folder, "recipe": tiny_run.recipe, "rounds": None}, version_of=folder)
    refresh = Pins({"folder": folder}, dict.fromkeys(("policy", "attempts"), folder / "training"))
    (tmp_path / "link").symlink_to("/etc")
    own = {"folder": folder, "recipe": tiny_run.recipe, "rounds": None}
    assert curation.refusal({"recipe": tiny_run.recipe, "out": folder}) is None
    assert training.refusal({**own, "version": 1}) is None
    assert (
        refresh.refusal({"folder": folder, "policy": folder / "training" / "0001" / "model", "attempts": None}) is None
    )
    refused: list[tuple[Pins, dict[str, Any]]] = [
        (curation, {"recipe": tmp_path / "other.toml", "out": folder}),
        (curation, {"recipe": tiny_run.recipe, "out": None}),
        (curation, {"recipe": tiny_run.recipe, "out": folder, "overrides": ["sources=[]"]}),
        *((training, {**own, "version": version}) for version in (0, -1, 2, None, "1/../..")),
        (training, {**own, "version": 1, "rounds": 99}),
        (refresh, {"folder": tmp_path, "policy": folder / "training", "attempts": None}),
        (refresh, {"folder": folder, "policy": tmp_path / "model"}),
        (refresh, {"folder": folder, "policy": folder / "training" / ".." / "review.jsonl"}),
        (refresh, {"folder": folder, "policy": Path("training/model")}),
        (refresh, {"folder": folder, "policy": folder / "training", "attempts": tmp_path / "link" / "passwd"}),
    ]
    for pins, parameters in refused:
        assert "this service was not started with it" in (pins.refusal(parameters) or "")


def test_another_account_reads_no_key(attacked: Attacked) -> None:
    assert (attacked.run / SERVICE).stat().st_mode & 0o777 == 0o700
    assert (attacked.run / SERVICE / KEY_FILE).stat().st_mode & 0o777 == 0o600
    processes = [attacked.run / SERVICE / "service.json"]
    token = json.loads(processes[0].read_text())["token"]
    secrets = (attacked.key, attacked.service_key)
    for process in processes_of(token):
        with contextlib.suppress(psutil.NoSuchProcess):  # it may have ended
            words = " ".join(psutil.Process(process).cmdline())
            assert not any(secret in words for secret in secrets), "anybody may read arguments"
    assert not any(secret in attacked.log.read_text() for secret in secrets)
    if os.getuid() != 0:
        pytest.skip("only root can try it from another account")
    tried = f"""
import os, sys, urllib.request, urllib.error
for process in {list(processes_of(token))}:
    try:
        sys.exit(f"read {{open(f'/proc/{{process}}/environ').read(9)}}")
    except (PermissionError, FileNotFoundError):  # it may have ended
        pass
for path in {[str(attacked.run / SERVICE / name) for name in (KEY_FILE, "service.json")]}:
    try:
        sys.exit(open(path).read())
    except PermissionError:
        pass
try:
    sys.exit(urllib.request.urlopen("http://127.0.0.1:{attacked.port}/api/deployments/name/refresh/tiny").read())
except urllib.error.HTTPError as error:
    assert error.code == 401
print("nothing")
"""
    nobody: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}
    seen = subprocess.run(
        ["/usr/bin/env", "python3", "-c", tried], cwd="/", capture_output=True, text=True, check=False, **nobody
    )
    if "Permission denied" in seen.stderr and "python3" in seen.stderr:
        pytest.skip("no interpreter that another account may start")
    assert (seen.returncode, seen.stdout.strip()) == (0, "nothing"), seen.stderr


def test_the_pages_key_opens_the_runs_own_page(attacked: Attacked) -> None:
    address = f"http://127.0.0.1:{attacked.port}"
    with httpx.Client(base_url=address, follow_redirects=True, timeout=PATIENCE_S) as visitor:
        assert visitor.get(f"{PAGE}/").status_code == 401
        typed = {"content-type": "application/x-www-form-urlencoded"}
        assert visitor.post(f"{PAGE}/enter", content="token=guess", headers=typed).status_code == 403
        assert visitor.post(f"{PAGE}/enter", content=f"token={attacked.key}", headers=typed).status_code == 200
