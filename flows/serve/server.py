"""Runs a local Prefect server that ends with its parent, unless PREFECT_API_URL is set.

Call `quiet` before importing Prefect.
"""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.extras import has_extra
from curation.records import GoldilocksError
from flows.serve.processes import TOKEN, end_with_parent

if TYPE_CHECKING:
    from starlette.applications import Starlette

PAGE = "/goldilocks"
"""The page's path on Prefect's server."""

HEALTH_S = 10.0
"""Seconds for one answer about its health."""

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

    from flows.serve.access import Guard, keys_of_environment

    if not sys.stdin.isatty():
        threading.Thread(target=end_with_parent, args=(os.environ.get(TOKEN),), daemon=True).start()
    keys = keys_of_environment()
    origins = [f"http://{name}:{port}" for name in ("127.0.0.1", "localhost")]
    os.environ["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"] = ",".join(origins)
    from prefect.server.api.server import create_app

    unblock_automations()
    app = create_app()
    add_page(app, folders, keys.page)
    uvicorn.run(Guard(app, keys, origins), host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    _serve(int(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
