"""Runs Prefect's server and the runner, restarted together when either ends (`goldilocks serve`).

PREFECT_API_URL names a server to use instead. A local one stores records as SQLite in PREFECT_HOME, or in
PREFECT_API_DATABASE_CONNECTION_URL (``postgresql+asyncpg://user:password@host:5432/name``).

Invariants: the service is crash-only; children end with this process, and a set's next service ends what is left. A
lock allows one service per set.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from curation.extras import has_extra
from curation.records import ConfigError, GoldilocksError, StoreError
from curation.storage.locks import lock_folder, lock_holder
from curation.storage.stages import atomic_write
from flows.run.recipe import load_recipe
from flows.run.terminal import SafeConsole
from flows.serve.access import CLIENT_KEY, KEY_FILE, PAGE_KEY, SERVER_KEY, Keys, new_keys, write_key
from flows.serve.server import HEALTH_S, NO_TELEMETRY, PAGE, TOKEN, end_processes, quiet
from flows.serve.unfinished import trainer_of

PORT = 4200  # the default, as Prefect's

DATABASE = "PREFECT_API_DATABASE_CONNECTION_URL"

SERVICE = "service"  # the service's folder in the run folder

RUNNER = {"PREFECT_RUNNER_SERVER_ENABLE": "false", "PREFECT_CLIENT_METRICS_ENABLED": "false"}
"""Variables of the runner, which opens no port."""

START_S = 600.0  # seconds until the server must answer; a first start creates a database
STOP_S = 10.0  # seconds until a child is killed
RESTART_S = 2.0  # seconds until the children are restarted
BEGINS_S = 60.0  # seconds in which the first runner's error ends the service
WATCH_S = 0.5  # seconds between checks of the children


def serve_recipes(paths: Sequence[Path], out: Path | None = None, port: int | None = None) -> None:
    """Register the recipes' deployments and run what is due, until interrupted.

    Args:
        out: a single recipe's run folder; by default runs/NAME.

    Raises:
        ConfigError: a recipe is invalid, names repeat, or ``out`` is ambiguous.
        StoreError: a set is served already.
        GoldilocksError: the port is taken, or nothing starts.
    """
    recipes = [load_recipe(path) for path in paths]
    names = [recipe.name for recipe in recipes]
    if len(set(names)) < len(names):
        raise ConfigError(f"two of the recipes have one name ({', '.join(sorted(names))}); their names must differ.")
    if out is not None and len(paths) > 1:
        raise ConfigError("--out goes with one recipe; without it each runs in runs/NAME.")
    runs = tuple((out or Path("runs") / name).absolute() for name in names)
    for path, recipe, run in zip(paths, recipes, runs, strict=True):
        trainer_of(path, recipe.schedule, run)
    own_port, token, keys = port or PORT, secrets.token_hex(8), new_keys()
    runner = [sys.executable, "-m", "flows.serve.runner", str(out or ""), *(str(path.absolute()) for path in paths)]

    @contextmanager
    def children() -> Iterator[dict[str, subprocess.Popen[bytes]]]:
        """Start the runner and, without PREFECT_API_URL, a server."""
        with ExitStack() as stack:
            address, server = stack.enter_context(serving_api(own_port, keys, token, runs))
            environment = {**os.environ, **RUNNER, "PREFECT_API_URL": address, TOKEN: token}
            if server is not None:
                environment[CLIENT_KEY] = keys.service
                environment.pop("PREFECT_API_KEY", None)
            process = subprocess.Popen(runner, stdin=subprocess.PIPE, env=environment, start_new_session=True)
            stack.callback(stop, process)
            yield {**({"Prefect's server": server} if server is not None else {}), "the runner": process}

    quiet(NO_TELEMETRY)
    with ExitStack() as stack:
        for folder in runs:
            stack.enter_context(_served_once(folder / SERVICE, token, keys.page))
        stack.callback(end_processes, token)
        page = f"the runs' own page: http://127.0.0.1:{own_port}{PAGE}/\n" if has_extra("page") else ""
        access = f"{page}pages ask for the key in {runs[0] / SERVICE / KEY_FILE}, which only you can read"
        if os.environ.get("PREFECT_API_URL"):
            access = (
                "PREFECT_API_URL names your own server: its access rules hold, this service's key does not protect "
                "it. Only the flows and parameters of these recipes are run."
            )
        print(f"starting: Prefect's page and the recipes' schedules\n{access}", file=sys.stderr, flush=True)
        _keep_serving(children, token)


@contextmanager
def _served_once(folder: Path, token: str, key: str) -> Iterator[None]:
    """Lock a set's service, end an earlier one, write the key."""
    mark = folder / "service.json"
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_folder(folder))
        except StoreError as error:
            if not mark.exists():
                raise
            raise StoreError(
                f"{folder.parent} is served already, by process {lock_holder(folder)}; end it, or give another --out."
            ) from error
        if mark.exists():
            end_processes(str(json.loads(mark.read_text(encoding="utf-8"))["token"]))
        atomic_write(mark, json.dumps({"token": token}) + "\n")
        stack.callback(write_key(folder, key).unlink, missing_ok=True)
        yield


def _keep_serving(
    children: Callable[[], AbstractContextManager[Mapping[str, subprocess.Popen[bytes]]]], token: str
) -> None:
    """Restart the children when one ends; raise if they do not start at first."""
    console, is_first = SafeConsole(), True
    while True:
        try:
            with children() as processes:
                begun = time.monotonic()
                while all(process.poll() is None for process in processes.values()):
                    time.sleep(WATCH_S)
                name, status = next(
                    (name, process.returncode) for name, process in processes.items() if process.poll() is not None
                )
                ended = f"{name} ended with status {status}"
                failed = name == "the runner" and status > 0  # below 0: it was killed
                if is_first and failed and time.monotonic() - begun < BEGINS_S:
                    raise GoldilocksError(f"nothing is served: {ended} while starting.")
        except GoldilocksError as error:
            if is_first:
                raise
            ended = str(error)
        is_first = False
        end_processes(token)
        console.print(f"{time.strftime('%H:%M:%S')} {ended}; restarting everything")
        time.sleep(RESTART_S)


@contextmanager
def serving_api(
    port: int, keys: Keys, token: str = "", folders: Sequence[Path] = ()
) -> Iterator[tuple[str, subprocess.Popen[bytes] | None]]:
    """Yield a Prefect API's address, and its server process if local.

    Args:
        keys, token: of a local server and the service.
        folders: run folders on the page, in one folder.
    """
    user_api = os.environ.get("PREFECT_API_URL")
    if user_api:
        yield user_api, None
        return
    _require_free(port)
    address = f"http://127.0.0.1:{port}/api"
    process = subprocess.Popen(
        [sys.executable, "-m", "flows.serve.server", str(port), *map(str, folders)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={
            **os.environ,
            **({TOKEN: token} if token else {}),
            SERVER_KEY: keys.service,
            PAGE_KEY: keys.page,
            "PREFECT_SERVER_API_HOST": "127.0.0.1",
            "PREFECT_SERVER_API_PORT": str(port),
            "PREFECT_SERVER_API_BASE_PATH": "/api",
            "PREFECT_UI_API_URL": address,
        },
        start_new_session=True,
    )
    try:
        _wait_for(process, address)
        yield address, process
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a child, and what it has started, by closing its standard input."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(timeout=STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_for(process: subprocess.Popen[bytes], address: str) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise GoldilocksError(
                f"Prefect's server ended with status {process.returncode}; run `python -m flows.serve.server 4200` to "
                f"see why, and look at {DATABASE} if you set it."
            )
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=HEALTH_S):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise GoldilocksError(f"Prefect's server did not answer at {address} within {START_S:.0f} s; start it again.")


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise GoldilocksError(
                f"port {port} is taken ({error.strerror}); give another --port, or set PREFECT_API_URL to the server "
                "that runs there."
            ) from error
