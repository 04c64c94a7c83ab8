"""Runs a local Prefect server that ends with its parent, unless PREFECT_API_URL is set; ends a service's processes.

Processes are found by a token in their environment, as children outlive parents.

Call `quiet` before importing Prefect.
"""

from __future__ import annotations

import os
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.extras import has_extra
from curation.records import GoldilocksError

if TYPE_CHECKING:
    from starlette.applications import Starlette

PAGE = "/goldilocks"  # the page's path on Prefect's server
HEALTH_S = 10.0  # seconds for one answer about its health

NO_TELEMETRY = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "PREFECT_CLI_PROMPT": "false", "DO_NOT_TRACK": "1"}
QUIET = {
    **NO_TELEMETRY,
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
}


def quiet(defaults: Mapping[str, str] = QUIET) -> None:
    """Disable Prefect's log noise and telemetry by default."""
    for name, value in defaults.items():
        os.environ.setdefault(name, value)


def user_api() -> str | None:
    """Return the user's Prefect API, if any, once it has answered; make Prefect `quiet`."""
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


def add_page(server: Starlette, folders: Sequence[Path], token: str) -> None:
    """Add the page of run folders, which are in one folder, below `PAGE`, if its extra is installed.

    Args:
        token: the page's key.
    """
    if not folders or not has_extra("page"):
        return
    from starlette.responses import RedirectResponse
    from starlette.routing import Mount, Route

    from flows.page.app import make_app

    page = make_app(folders[0].parent, token, only=[folder.name for folder in folders])
    server.router.routes[:0] = [Route(PAGE, lambda _request: RedirectResponse(f"{PAGE}/")), Mount(PAGE, page)]


def _serve(port: int, folders: Sequence[Path]) -> None:
    import threading

    import uvicorn

    from flows.serve.access import PAGE_KEY, SERVER_KEY, Guard, Keys, new_keys

    if not sys.stdin.isatty():
        threading.Thread(target=end_with_parent, args=(os.environ.get(TOKEN),), daemon=True).start()
    made = new_keys()
    keys = Keys(os.environ.get(SERVER_KEY) or made.service, os.environ.get(PAGE_KEY) or made.page)
    os.environ[SERVER_KEY] = keys.service  # which Prefect reads
    origins = [f"http://{name}:{port}" for name in ("127.0.0.1", "localhost")]
    os.environ["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"] = ",".join(origins)
    from prefect.server.api.server import create_app

    unblock_automations()
    app = create_app()
    add_page(app, folders, keys.page)
    uvicorn.run(Guard(app, keys, origins), host="127.0.0.1", port=port, log_level="error")


TOKEN = "GOLDILOCKS_SERVICE"  # environment variable of the service's token


def processes_of(token: str) -> Iterator[int]:
    """Yield the ids of a service's other processes."""
    mark = f"\0{TOKEN}={token}\0".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        with suppress(OSError):  # it has ended, or is another user's
            if mark in b"\0" + (folder / "environ").read_bytes() + b"\0":
                yield int(folder.name)


def end_processes(token: str) -> int:
    """Kill a service's other processes; return their number."""
    ended: set[int] = set()
    while alive := [process for process in processes_of(token) if process not in ended]:
        for process in alive:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
            ended.add(process)
    return len(ended)


def end_with_parent(token: str | None) -> None:
    """When the parent closes standard input, end the service with this token and this process."""
    with suppress(OSError):
        while os.read(0, 1):
            pass
    if token is not None:
        end_processes(token)
    os._exit(0)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
