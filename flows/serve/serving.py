"""`goldilocks serve`: Prefect's server and its runner of deployments as children, started again when one ends.

If PREFECT_API_URL names a server, that one is used. Otherwise one is started on the loopback interface; it keeps its
records in PREFECT_HOME as SQLite, or in PostgreSQL if PREFECT_API_DATABASE_CONNECTION_URL names one
(``postgresql+asyncpg://user:password@host:5432/name``).

The service is crash-only: nothing needs a proper end. A child that ends takes all others with it, and they are started
again; when this process ends, its children end every process of the service (`flows.serve.processes`); what they left
is ended by the next service of the same set. A set is served once at a time, by a lock that ends with this process.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from curation.records import ConfigError, GoldilocksError, StoreError
from curation.storage.locks import lock_folder
from curation.storage.stages import atomic_write
from flows.run.recipe import load_recipe
from flows.serve.access import CLIENT_KEY, KEY_FILE, write_key
from flows.serve.processes import REFUSED, TOKEN, end_processes
from flows.serve.server import PAGE, serving_api, stop

PORT = 4200
"""Default port of the page; Prefect's own."""

SERVED = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_CLI_PROMPT": "false",
    "DO_NOT_TRACK": "1",
}

SERVICE = "service"
"""In the run folder: the lock of its service, the service's token and its key."""

SETTLED_S, MAX_WAIT_S = 10.0, 60.0
"""Children that lived shorter than the first are started again after a wait: 2 s, doubled each time up to the second.

Those that lived longer are started again at once: their runs are pending until then."""

WATCH_S = 0.5


@dataclass(frozen=True, slots=True)
class Service:
    """What is served: the recipes, the run folder of a single one, and the port of Prefect's page."""

    paths: tuple[Path, ...]
    out: Path | None
    port: int
    token: str
    folders: tuple[Path, ...]
    key: str


def serve_recipes(paths: Sequence[Path], out: Path | None = None, port: int | None = None) -> None:
    """Register the recipes' deployments and run what falls due, until interrupted (`goldilocks serve`).

    Args:
        out: the run folder of a single recipe; runs/NAME if missing.

    Raises:
        ConfigError: a recipe is not valid, two have one name, or ``out`` is given for several.
        StoreError: one of the sets is served already.
        GoldilocksError: the port is taken, or Prefect's server does not start.
    """
    names = [load_recipe(path).name for path in paths]
    if len(set(names)) < len(names):
        raise ConfigError(f"two of the recipes have one name ({', '.join(sorted(names))}); their names must differ.")
    if out is not None and len(paths) > 1:
        raise ConfigError("--out goes with one recipe; without it each runs in runs/NAME.")
    runs = tuple((out or Path("runs") / name).absolute() for name in names)
    absolute = tuple(path.absolute() for path in paths)
    service = Service(absolute, out, port or PORT, secrets.token_hex(8), runs, secrets.token_urlsafe(32))
    for name, value in SERVED.items():
        os.environ.setdefault(name, value)
    with ExitStack() as stack:
        for folder in runs:
            stack.enter_context(_served_once(folder / SERVICE, service.token, service.key))
        stack.callback(end_processes, service.token)
        stack.enter_context(_ends_on_sigterm())
        _report("starting: Prefect's page and the recipes' schedules", *_access_lines(service))
        _keep_serving(service)


def _report(*lines: str) -> None:
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def _access_lines(service: Service) -> list[str]:
    """Return where the pages are, and who may open them."""
    if os.environ.get("PREFECT_API_URL"):
        return [
            "PREFECT_API_URL names your own server: its access rules hold, this service's key does not protect it. "
            "Only the flows and parameters of these recipes are run."
        ]
    return [
        f"the runs' own page: http://127.0.0.1:{service.port}{PAGE}/",
        f"both pages ask for the key in {service.folders[0] / SERVICE / KEY_FILE}, which only you can read",
    ]


@contextmanager
def _served_once(folder: Path, token: str, key: str) -> Iterator[None]:
    """Hold a set's service with the key in its folder, and end what the service before left over."""
    mark = folder / "service.json"
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_folder(folder))
        except StoreError as error:
            if not mark.exists():
                raise
            holder = json.loads(mark.read_text(encoding="utf-8"))["process"]
            raise StoreError(
                f"{folder.parent} is served already, by process {holder}; end that one, or give another --out."
            ) from error
        if mark.exists():
            end_processes(str(json.loads(mark.read_text(encoding="utf-8"))["token"]))
        atomic_write(mark, json.dumps({"token": token, "process": os.getpid()}) + "\n")
        stack.callback(write_key(folder, key).unlink, missing_ok=True)
        yield


@contextmanager
def _ends_on_sigterm() -> Iterator[None]:
    """Have SIGTERM end this process as Ctrl-C does, so that the open blocks are left."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _keep_serving(service: Service) -> None:
    """Start the children, and start them again when one has ended; a server that never started is the command's end."""
    wait_s, has_served = 1.0, False
    while True:
        started = time.monotonic()
        try:
            ended = _serve_once(service)
            has_served = True
        except GoldilocksError as error:
            if not has_served:
                raise
            ended = str(error)
        end_processes(service.token)
        is_settled = time.monotonic() - started > SETTLED_S
        wait_s = 1.0 if is_settled else min(2 * wait_s, MAX_WAIT_S)
        _report(f"{time.strftime('%H:%M:%S')} {ended}; everything is started again")
        time.sleep(0.0 if is_settled else wait_s)


def _serve_once(service: Service) -> str:
    """Run the children until one of them ends, and return which one.

    Raises:
        SystemExit: the runner refused, and has printed the reason.
    """
    with ExitStack() as stack:
        address, server = stack.enter_context(serving_api(service.port, service.key, service.token, service.folders))
        command = [sys.executable, "-m", "flows.serve.runner", address, str(service.out or "")]
        environment = {**_client_environment(service), "PREFECT_API_URL": address, TOKEN: service.token}
        runner = subprocess.Popen(
            [*command, *map(str, service.paths)], stdin=subprocess.PIPE, env=environment, start_new_session=True
        )
        stack.callback(stop, runner)
        while runner.poll() is None and (server is None or server.poll() is None):
            time.sleep(WATCH_S)
        if runner.returncode == REFUSED:
            raise SystemExit(1)
        name, process = ("Prefect's server", server) if runner.poll() is None else ("the runner", runner)
        return f"{name} ended with status {process.returncode if process is not None else '?'}"


def _client_environment(service: Service) -> dict[str, str]:
    """Return the runner's variables: without a server of Prefect's runner, and with the key of a server of ours."""
    closed = {**os.environ, "PREFECT_RUNNER_SERVER_ENABLE": "false", "PREFECT_CLIENT_METRICS_ENABLED": "false"}
    if os.environ.get("PREFECT_API_URL"):
        return closed
    closed.pop("PREFECT_API_KEY", None)
    return {**closed, CLIENT_KEY: service.key}
