"""Runs a local Prefect server that ends with its parent, unless PREFECT_API_URL is set.

Call `quiet` before importing Prefect.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.extras import require_extra
from curation.records import GoldilocksError
from flows.serve.processes import TOKEN, end_with_parent

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PAGE = "/goldilocks"
"""The page's path on Prefect's server."""

START_S = 600.0
"""Seconds until it must answer; a first start creates a database."""

HEALTH_S = 10.0
"""Seconds for one answer about its health."""

STOP_S = 10.0
"""Seconds until it is killed; it holds no run's state."""

QUIET = {
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_CLI_PROMPT": "false",
    "DO_NOT_TRACK": "1",
}


def quiet() -> None:
    """Disable Prefect's log noise and telemetry by default."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)


def user_api() -> str | None:
    """Return the user's Prefect API, if any, and make Prefect `quiet`.

    Raises:
        GoldilocksError: it does not answer.
    """
    address = os.environ.get("PREFECT_API_URL") or None
    if address is None:
        return None
    quiet()
    try:
        with urllib.request.urlopen(f"{address.rstrip('/')}/health", timeout=HEALTH_S):
            pass
    except urllib.error.HTTPError:
        pass  # somebody answers, and may want a key
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise GoldilocksError(
            f"PREFECT_API_URL = {address}: no Prefect API answers there ({reason}); start it, or unset the variable."
        ) from error
    return address


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a server; kill it after `STOP_S`."""
    process.terminate()
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(timeout=STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_for_server(process: subprocess.Popen[bytes], address: str, name: str, *, ended: str, silent: str) -> None:
    """Wait until the server answers.

    Raises:
        GoldilocksError: it ended or stays silent, with advice ``ended`` or ``silent``.
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


class ServerWithPage:
    """Prefect's server with the page below `PAGE`, as an ASGI application.

    Args:
        token: the page's key.
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


def unblock_automations() -> None:
    """Have Prefect's server note a changed automation in its own event loop, after the commit.

    Prefect 3.7 blocks that loop until another has noted it: for ever, if a coroutine of the first holds the lock, as
    `reconcile_automations` often does.
    """
    import asyncio

    from prefect.server.events.models import automations

    noting: set[asyncio.Task[Any]] = set()

    def note(change: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(change)
        noting.add(task)
        task.add_done_callback(noting.discard)

    vars(automations)["run_coro_as_sync"] = note


def _serve(port: int, folders: Sequence[Path]) -> None:
    import threading

    import uvicorn

    from flows.serve.access import Guard, keys_of_environment

    if not sys.stdin.isatty():
        threading.Thread(target=end_with_parent, args=(os.environ.get(TOKEN),), daemon=True).start()
    keys = keys_of_environment()
    origins = [f"http://{name}:{port}" for name in ("127.0.0.1", "localhost")]
    os.environ["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"] = ",".join(origins)
    from prefect.server.api.server import create_app

    unblock_automations()
    app = Guard(ServerWithPage(create_app(), folders, keys.page), keys, origins)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    _serve(int(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
