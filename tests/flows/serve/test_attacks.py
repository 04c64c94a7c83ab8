"""Attacks on a real service, without a key, from foreign names and origins, with every key; none may write a file."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import tomllib
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import websockets

from flows.publish.versions import stored_versions
from flows.serve.access import KEY_FILE
from flows.serve.schedule import CODE, Pins
from flows.serve.server import PAGE, processes_of
from flows.serve.serving import SERVICE
from tests.flows.conftest import Tiny, newer_policy
from tests.flows.serve.conftest import Service
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.slow

SHELL = [{"prefect.deployments.steps.run_shell_script": {"script": "touch pwned"}}]
REQUESTS = Path(__file__).with_name("requests.jsonl")


def requests(of: str, deployment: str, run: str = "") -> list[tuple[str, str, Any]]:
    """Method, path and body of the requests of a kind."""
    text = REQUESTS.read_text(encoding="utf-8")
    for name, value in (("DEPLOYMENT", deployment), ("RUN", run), ("PAGE", PAGE)):
        text = text.replace(name, value)
    rows = [row for row in map(json.loads, text.splitlines()) if row["of"] == of]
    assert rows
    return [(row["method"], row["path"], row["body"]) for row in rows]


def test_a_run_publishes_a_set_and_the_event_of_a_checkpoint_refreshes_it(service: Service) -> None:
    own = {"recipe": str(service.recipe), "out": str(service.run)}
    assert service.outcome(service.start("curate-math", own)).startswith("COMPLETED")
    stage = service.run / "training" / "0001"
    stage.mkdir(parents=True)
    answers = {"half": "42 42 42 42", "markup": "144 144 1 2"}  # one is too easy now, one stays
    policy = newer_policy(stage, finals=answers)
    event = {
        "id": str(uuid.uuid4()),
        "occurred": datetime.now(UTC).isoformat(),
        "event": "goldilocks.checkpoint",
        "resource": {"prefect.resource.id": "goldilocks.checkpoint.tiny"},
        "payload": {"folder": str(service.run), "policy": str(policy), "attempts": None},
    }
    assert service.ask("POST", "/api/events", [event], service.service_key).is_success
    wait_until(lambda: len(stored_versions(service.run)) == 2, tick_s=0.2)
    assert [version.origin for version in stored_versions(service.run)] == ["run", "refresh"]


def test_nothing_is_answered_without_a_key(service: Service) -> None:
    deployment = service.deployment("refresh")["id"]
    asked = requests("without a key", deployment)
    for method, path, body in asked:
        for key in (None, "guess", f"{service.key}x"):
            assert service.ask(method, path, body, key).status_code == 401, path
    assert service.deployment("refresh")["pull_steps"] in (None, [])
    assert service.ask("GET", "/api/health").status_code == 200


def test_a_foreign_host_is_refused(service: Service) -> None:
    """A name that an attacker points at this machine (DNS rebinding)."""
    for host in ("evil.example", "evil.example:4200", "127.0.0.1.evil.example", "localhost@evil", "[", ""):
        for path in ("/", "/api/health", "/api/ready", f"{PAGE}/", "/ui-settings", "/docs"):
            reply = service.ask("GET", path, key=service.service_key, Host=host)
            assert reply.status_code in (400, 403), (host, path)


def test_a_foreign_origin_is_refused(service: Service) -> None:
    origins = ["http://evil.example", "null", "http://127.0.0.1:9", "https://localhost", f"http://evil:{service.port}"]
    for origin in origins:
        for method in ("GET", "POST", "OPTIONS"):
            asked = {"Origin": origin, "Access-Control-Request-Method": "PATCH"}
            reply = service.ask(method, "/api/flow_runs/filter", key=service.service_key, **asked)
            assert reply.status_code == 403
            assert "access-control-allow-origin" not in reply.headers
    for own in (f"http://127.0.0.1:{service.port}", f"http://localhost:{service.port}"):
        reply = service.ask("POST", "/api/flow_runs/filter", {}, service.key, Origin=own)
        assert reply.status_code == 200
        assert reply.headers["access-control-allow-origin"] == own
        reply = service.ask("POST", "/api/flow_runs/filter", {}, Origin=own)
        assert (reply.status_code, reply.headers["access-control-allow-origin"]) == (401, own), (
            "a page asks for the key"
        )


def test_a_web_socket_wants_a_key_and_no_foreign_origin(service: Service) -> None:
    async def enters(path: str, token: str | None, **headers: str) -> bool:
        given: Any = {"subprotocols": ["prefect"] if token is not None else None, "additional_headers": headers}
        try:
            async with websockets.connect(f"ws://127.0.0.1:{service.port}{path}", **given) as socket:
                await socket.send(json.dumps({"type": "auth", "token": token}))
                return bool(json.loads(await socket.recv())["type"] == "auth_success")
        except websockets.WebSocketException:
            return False

    for path in ("/api/events/in", "/api/events/out", "/api/logs/out", "/api/task_runs/subscriptions/scheduled"):
        assert not asyncio.run(enters(path, None))
        assert not asyncio.run(enters(path, "guess"))
        assert not asyncio.run(enters(path, service.service_key, Origin="http://evil.example"))
        assert asyncio.run(enters(path, service.service_key))
        listens = asyncio.run(enters(path, service.key))
        assert listens == path.endswith("/out"), "the pages' key listens, and sends nothing"


def test_the_pages_key_shows_and_starts_and_changes_nothing(service: Service) -> None:
    deployment = service.deployment("refresh")["id"]
    run = service.start("refresh", {"folder": "/elsewhere", "policy": "/elsewhere/model"})
    allowed = requests("pages, allowed", deployment)
    refused = requests("pages, refused", deployment, run)
    refused.append(("POST", f"/api/deployments/{deployment}/create_flow_run", {"name": "x" * (1 << 21)}))
    assert [service.ask(*one, service.key).status_code for one in refused] == [403] * len(refused)
    assert [service.ask(*one, service.key).is_success for one in allowed] == [True] * len(allowed)
    assert service.outcome(run).startswith("CANCELLED: refused: folder = /elsewhere")


def test_overrides_of_a_served_run_name_no_plug_in(service: Service) -> None:
    """A plug-in runs with the rights of the service, so only the recipe that was served may name one."""
    evil, pwned = service.run.parent / "plug_in.py", service.run.parent / "pwned-by-plug-in"
    evil.write_text(f"open({str(pwned)!r}, 'w')\nRULE = None\n")
    own = {"recipe": str(service.recipe), "out": str(service.run)}
    run = service.start("curate-math", {**own, "overrides": [f"statements.rules=['{evil}:RULE']"]})
    assert service.outcome(run).startswith("CANCELLED: refused: overrides = ")


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


def test_another_account_reads_no_key(service: Service) -> None:
    assert (service.run / SERVICE).stat().st_mode & 0o777 == 0o700
    assert (service.run / SERVICE / KEY_FILE).stat().st_mode & 0o777 == 0o600
    processes = [service.run / SERVICE / "service.json"]
    token = json.loads(processes[0].read_text())["token"]
    secrets = (service.key, service.service_key)
    for process in processes_of(token):
        with contextlib.suppress(psutil.NoSuchProcess):  # it may have ended
            words = " ".join(psutil.Process(process).cmdline())
            assert not any(secret in words for secret in secrets), "anybody may read arguments"
    assert not any(secret in service.log.read_text() for secret in secrets)
    if os.getuid() != 0:
        pytest.skip("only root can try it from another account")
    tried = tomllib.loads(Path(__file__).with_name("scripts.toml").read_text(encoding="utf-8"))["other_account"]
    paths = [str(service.run / SERVICE / name) for name in (KEY_FILE, "service.json")]
    address = f"http://127.0.0.1:{service.port}/api/deployments/name/refresh/tiny"
    about = json.dumps([list(processes_of(token)), paths, address])
    nobody: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}
    seen = subprocess.run(
        ["/usr/bin/env", "python3", "-c", tried, about], cwd="/", capture_output=True, text=True, check=False, **nobody
    )
    if "Permission denied" in seen.stderr and "python3" in seen.stderr:
        pytest.skip("no interpreter that another account may start")
    assert (seen.returncode, seen.stdout.strip()) == (0, "nothing"), seen.stderr


def test_the_pages_key_opens_the_runs_own_page(service: Service) -> None:
    address = f"http://127.0.0.1:{service.port}"
    with httpx.Client(base_url=address, follow_redirects=True, timeout=PATIENCE_S) as visitor:
        assert visitor.get(f"{PAGE}/").status_code == 401
        typed = {"content-type": "application/x-www-form-urlencoded"}
        assert visitor.post(f"{PAGE}/enter", content="token=guess", headers=typed).status_code == 403
        assert visitor.post(f"{PAGE}/enter", content=f"token={service.key}", headers=typed).status_code == 200


def test_the_runner_refuses_what_the_api_was_made_to_name(service: Service) -> None:
    """With the service's own key, as if the database were the attacker's."""
    evil, pwned = service.run.parent / "evil.py", service.run.parent / "pwned"
    evil.write_text(f"open({str(pwned)!r}, 'w')\nfrom prefect import flow\n@flow\ndef go(**_): ...\n")
    tampered: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
        ("curate-math", {"pull_steps": SHELL, "job_variables": {"env": {"LD_PRELOAD": "/tmp/x"}}}, {}, CODE[0]),
        ("refresh", {"entrypoint": f"{evil}:go"}, {"policy": f"{service.run}/training/1/model"}, "entrypoint of"),
    ]
    started = []
    for flow, change, parameters, expected in tampered:
        path = f"/api/deployments/{service.deployment(flow)['id']}"
        assert service.ask("PATCH", path, change, service.service_key).status_code == 204
        started.append((service.start(flow, parameters), expected))
    for run, expected in started:
        assert service.outcome(run).startswith(f"CANCELLED: refused: {expected}")
    assert "refused: pull_steps, job_variables of the deployment changed" in service.log.read_text()
