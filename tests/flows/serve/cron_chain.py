"""A recipe that is served: a cron that fires by itself, also after a kill of the whole service, and an event of a
checkpoint that refreshes the set.

A cron knows no less than a minute, so the chain runs on a thread from the first test of the flows on, and the test that
asks for it finds it done. It holds a server of its own, and ends it when the chain is through or the tests end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from flows.publish.versions import stored_versions
from flows.run.history import FILE as HISTORY
from flows.serve.access import CLIENT_KEY, SERVER_KEY
from flows.serve.processes import processes_of
from flows.serve.serving import SERVICE
from tests.flows.conftest import ROOT, TINY, free_port, tries, write_jsonl, write_tiny
from tests.waiting import PATIENCE_S

SCHEDULE = '\n[schedule]\ncron = "*/5 * * * *"\ntrain = "train.toml"\nrounds = 2\n'

SERVE = """
import sys
from pathlib import Path
from flows.serve.serving import serve_recipes

serve_recipes([Path(sys.argv[1])], Path(sys.argv[2]), int(sys.argv[3]))
"""


def scheduled(folder: Path, schedule: str = SCHEDULE) -> Path:
    """The tiny recipe with a schedule, and a trainer's recipe beside it."""
    recipe = write_tiny(folder)
    recipe.write_text(recipe.read_text() + schedule)
    (folder / "train.toml").write_text(
        'name = "stage"\nsteps = 1\nmodel = "student"\nmodels.student = { kind = "torch", model = "nowhere" }\n'
    )
    return recipe


@contextmanager
def running_chain(folder: Path) -> Iterator[Future[list[str]]]:
    """The chain on a thread; its result is the origins of the versions that came, in their order."""
    here = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    leave = threading.Event()
    with ThreadPoolExecutor(1, thread_name_prefix="cron-chain") as pool:
        try:
            yield pool.submit(_chain, folder, here, leave)
        finally:
            leave.set()


def _chain(folder: Path, here: dict[str, str], leave: threading.Event) -> list[str]:
    recipe = scheduled(folder / "in", '\n[schedule]\ncron = "* * * * *"\n[refresh]\nchange_probability = 0.05\n')
    answers = {"half": "42 42 42 42", "markup": "144 144 1 2"}  # one is too easy now, one stays
    answered = [tries(*TINY[name][:2], finals) for name, finals in answers.items()]
    port, run = free_port(), folder / "run"
    stage = run / "training" / "0001"
    stage.mkdir(parents=True)
    write_jsonl(stage / "newer.jsonl", answered)
    policy = stage / "newer.toml"
    policy.write_text(
        '[models.newer]\nkind = "recorded"\nname = "strong@2"\npath = "newer.jsonl"\n'
        'columns = { problem = "question", attempts = "tries", text = "text" }\n'
    )
    environment = {**here, "PREFECT_HOME": str(folder / "home")}
    server = _served(recipe, run, port, environment)
    try:
        _until(lambda: len(stored_versions(run)) == 1, server, leave)
        for process in [server.pid, *processes_of(_token(run))]:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        server.wait(timeout=PATIENCE_S)
        before = _finished_runs(run)
        server = _served(recipe, run, port, environment)
        _until(lambda: _finished_runs(run) > before, server, leave)
        payload = {"folder": str(run), "policy": str(policy), "attempts": None}
        _emit(run, here, port, "goldilocks.checkpoint", "goldilocks.checkpoint.tiny", payload)
        _until(lambda: len(stored_versions(run)) == 2, server, leave)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=PATIENCE_S)
    return [version.origin for version in stored_versions(run)]


def _served(recipe: Path, run: Path, port: int, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", SERVE, str(recipe), str(run), str(port)],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _until(true: Callable[[], bool], server: subprocess.Popen[bytes], leave: threading.Event) -> None:
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert server.poll() is None, f"what serves ended with status {server.returncode}"
        assert time.monotonic() < end, "nothing happened by itself"
        assert not leave.wait(0.5), "the tests ended first"


def _finished_runs(run: Path) -> int:
    return (run / HISTORY).read_text(encoding="utf-8").count('"command": "run", "state": "finished"')


def _token(run: Path) -> str:
    return str(json.loads((run / SERVICE / "service.json").read_text())["token"])


def service_key(run: Path) -> str:
    """The key that a service's own processes have, as their owner may read it."""
    mark = f"{SERVER_KEY}=".encode()
    for process in processes_of(_token(run)):
        for variable in Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
            if variable.startswith(mark):
                return variable.removeprefix(mark).decode()
    raise AssertionError("no server has a key")


def _emit(run: Path, here: dict[str, str], port: int, event: str, resource: str, payload: dict[str, Any]) -> None:
    """Emit an event as a trainer's run does."""
    told = json.dumps({"event": event, "resource": {"prefect.resource.id": resource}, "payload": payload})
    script = (
        "import json, sys\nfrom prefect.events import emit_event\nfrom prefect.events.worker import EventsWorker\n"
        "emit_event(**json.loads(sys.argv[1]))\nEventsWorker.drain_all(timeout=600)\n"
    )
    address = f"http://127.0.0.1:{port}/api"
    environment = {**here, "PREFECT_API_URL": address, CLIENT_KEY: service_key(run)}
    subprocess.run([sys.executable, "-c", script, told], env=environment, check=True)
