"""Prefect's server, without an account or a network: a process that ends with the one that started it.

Prefect's own temporary server outlives a parent that is killed; this one reads a pipe that its parent holds open. It
keeps its records in PREFECT_HOME. Where the user has a Prefect API (PREFECT_API_URL), that one is used.

Settings are environment variables that Prefect reads when it is first imported, so `quiet` must come before that.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from curation.extras import require_extra
from curation.records import GoldilocksError
from flows.serve.access import SERVER_KEY, Guard
from flows.serve.processes import TOKEN, end_with_parent

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PAGE = "/goldilocks"
"""Path of the runs' page, below the address of Prefect's."""

START_S = 600.0
"""Seconds that the server may take; its first start in a PREFECT_HOME creates a database, and a busy machine is slow.
A server that ends before is seen at once."""

HEALTH_S = 10.0
"""Seconds that a server may take to answer one question after its health."""

STOP_S = 10.0
"""Seconds that the server may take to end before it is killed; nothing of a run's state is in it."""

DATABASE = "PREFECT_API_DATABASE_CONNECTION_URL"

QUIET = {
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_CLI_PROMPT": "false",
    "DO_NOT_TRACK": "1",
}


def quiet() -> None:
    """Keep Prefect's log noise and telemetry away, unless the user has set these variables."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)


def user_api() -> str | None:
    """Return the address of the user's own Prefect API if there is one, and make Prefect `quiet`.

    Raises:
        GoldilocksError: nothing answers there.
    """
    address = os.environ.get("PREFECT_API_URL") or None
    if address is None:
        return None
    quiet()
    try:
        with urllib.request.urlopen(f"{address.rstrip('/')}/health", timeout=HEALTH_S):
            pass
    except urllib.error.HTTPError:
        pass  # a server answers, and may want a key
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise GoldilocksError(
            f"PREFECT_API_URL = {address}: no Prefect API answers there ({reason}); start it, or unset the variable."
        ) from error
    return address


@contextmanager
def serving_api(
    port: int, key: str, token: str = "", folders: Sequence[Path] = ()
) -> Iterator[tuple[str, subprocess.Popen[bytes] | None]]:
    """Yield the address of a Prefect API that schedules and triggers, for the length of the block, and its process.

    The process is None if the user's own API is used.

    Args:
        key: of the server, without which it answers no request.
        token: of the service that the process belongs to.
        folders: run folders in one parent folder, which the page next to Prefect's shows.

    Raises:
        GoldilocksError: the port is taken, or the server does not come up.
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
            SERVER_KEY: key,
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
    """End a process that was started here, and wait for it; one that does not end in `STOP_S` is killed."""
    process.terminate()
    if process.stdin is not None:
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
                f"see why, and check {DATABASE} if you set it."
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


class ServerWithPage:
    """Prefect's server, and below `PAGE` the page of the runs that are served, as an ASGI application.

    Args:
        token: what visitors of the page must show.
    """

    def __init__(self, server: ASGIApp, folders: Sequence[Path], token: str) -> None:
        self._server, self._folders, self._token = server, folders, token
        self._page: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        path = scope.get("path", "")
        if not self._folders or not (path == PAGE or path.startswith(f"{PAGE}/")):
            await self._server(scope, receive, send)
            return
        if self._page is None:
            require_extra("page", "the page")
            from flows.page.app import make_app

            parents = {folder.parent for folder in self._folders}
            names = [folder.name for folder in self._folders]
            self._page = make_app(parents.pop(), self._token, prefix=PAGE, only=names)
        await self._page(scope, receive, send)


def _serve(port: int, folders: Sequence[Path]) -> None:
    import threading

    import uvicorn

    if not sys.stdin.isatty():
        threading.Thread(target=end_with_parent, args=(os.environ.get(TOKEN),), daemon=True).start()
    key = os.environ.setdefault(SERVER_KEY, secrets.token_urlsafe(32))
    origins = [f"http://{name}:{port}" for name in ("127.0.0.1", "localhost")]
    os.environ["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"] = ",".join(origins)
    from prefect.server.api.server import create_app

    app = Guard(ServerWithPage(create_app(), folders, key), origins)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    _serve(int(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
