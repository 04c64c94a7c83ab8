"""Prefect without an account, a server started by hand, or a network.

Where the user has a Prefect API (PREFECT_API_URL), it is used. Else a temporary server is started on the loopback
interface for the length of the run; it keeps its records in PREFECT_HOME, so that a later `prefect server start` shows
them. Prefect's own temporary server outlives a parent that is killed; this one reads a pipe that its parent holds
open and ends with it.

Settings are environment variables that Prefect reads when it is first imported, so `quiet` must come before that.
"""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from curation.records import GoldilocksError

START_S = 600.0
"""Seconds that the server may take; its first start in a PREFECT_HOME creates a database, and a busy machine is slow.
A server that ends before is seen at once."""

HEALTH_S = 10.0
"""Seconds that the server may take to answer one question after its health."""

STOP_S = 10.0
"""Seconds that the server may take to end before it is killed; nothing of a run's state is in it."""

DRAIN_S = 30.0
"""Seconds that Prefect's last events may take to reach the server."""

QUIET = {
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_CLI_PROMPT": "false",
    "DO_NOT_TRACK": "1",
}

LEAN = {
    "PREFECT_SERVER_UI_ENABLED": "false",
    "PREFECT_UI_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_LATE_RUNS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_CANCELLATION_CLEANUP_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_FOREMAN_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_PAUSE_EXPIRATIONS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_REPOSSESSOR_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_ENABLED": "true",
    "PREFECT_SERVER_DATABASE_TIMEOUT": "300",  # seconds; 10 and 5 by default, which a busy machine may need
    "PREFECT_SERVER_DATABASE_CONNECTION_TIMEOUT": "300",
}


def quiet() -> None:
    """Keep Prefect's log noise and telemetry away, unless the user has set these variables."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)


@contextmanager
def prefect_api() -> Iterator[str]:
    """Yield the address of a Prefect API for the length of the block: the user's own, or a temporary server's."""
    quiet()
    user_api = os.environ.get("PREFECT_API_URL")
    if user_api:
        yield user_api
        return
    starting = _lock_start()
    port = _free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "flows.serve.server", str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **LEAN},
        start_new_session=True,
    )
    address = f"http://127.0.0.1:{port}/api"
    os.environ["PREFECT_API_URL"] = address
    try:
        # Prefect's import takes seconds, as the server's start does: let both take them at once
        from prefect.events.worker import EventsWorker
        from prefect.settings import (
            PREFECT_API_REQUEST_TIMEOUT,
            PREFECT_API_URL,
            PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
            temporary_settings,
        )

        wait_for_server(
            process,
            address,
            "Prefect's temporary server",
            ended="run `python -m flows.serve.server 4200` to see why",
            silent="set PREFECT_API_URL to a server of your own",
        )
        starting.close()
        with _refresh_settings():
            own = {
                PREFECT_API_URL: address,
                PREFECT_API_REQUEST_TIMEOUT: START_S,
                PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None,  # whose thread costs 0.8 s a flow
            }
            with temporary_settings(own):
                yield address
            EventsWorker.drain_all(timeout=DRAIN_S)  # while there is a server that takes them
    finally:
        starting.close()
        os.environ.pop("PREFECT_API_URL", None)
        stop(process)


@contextmanager
def _refresh_settings() -> Iterator[None]:
    """Make Prefect read its settings again: it reads them on import, and a second run would ask the first's server."""
    import prefect.context

    before = prefect.context.GLOBAL_SETTINGS_CONTEXT
    prefect.context.refresh_global_settings_context()
    try:
        yield
    finally:
        prefect.context.GLOBAL_SETTINGS_CONTEXT = before


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a server that was started here, and wait for it; one that does not end in `STOP_S` is killed."""
    process.terminate()
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(timeout=STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _lock_start() -> IO[str]:
    """Hold the start of a server alone: two that create the database of one PREFECT_HOME at once would break it."""
    home = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    home.mkdir(parents=True, exist_ok=True)
    handle = (home / ".goldilocks-start.lock").open("w")
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def wait_for_server(process: subprocess.Popen[bytes], address: str, name: str, *, ended: str, silent: str) -> None:
    """Wait until the server answers at the address.

    Raises:
        GoldilocksError: it ended (``ended`` says what to do then), or has not answered within `START_S` (``silent``).
    """
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise GoldilocksError(f"{name} ended with status {process.returncode}; {ended}.")
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=HEALTH_S):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise GoldilocksError(f"{name} did not answer at {address} within {START_S:.0f} s; {silent}.")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _end_with_parent() -> None:
    """Leave as soon as the parent's end of standard input is gone, however the parent ended."""
    while os.read(0, 1):
        pass
    os._exit(0)


def _serve(port: int) -> None:
    import threading

    import uvicorn

    if not sys.stdin.isatty():
        threading.Thread(target=_end_with_parent, daemon=True).start()
    uvicorn.run("prefect.server.api.server:create_app", factory=True, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
