"""Who may ask a service's server: its key, and a guard around the whole ASGI application.

A service makes one random key, Prefect's own auth string, and its processes read it from their environment. The key is
also in a file of the run folder, for the account that started the service, and is removed with the service.

Invariants: no key is an argument of a process; a request needs a Host of this machine and no Origin but the server's
own. Prefect checks the key below /api, and the runs' page checks it for itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from curation.records import StoreError
from curation.server_guard import LOCAL, host_name

SERVER_KEY, CLIENT_KEY = "PREFECT_SERVER_API_AUTH_STRING", "PREFECT_API_AUTH_STRING"
"""Environment variables of the key, as Prefect's server and its clients read it."""

KEY_FILE = "key"
"""The key's file, in the service's folder inside the run folder."""


def write_key(folder: Path, key: str) -> Path:
    """Write the key into a service's folder, for this account only, and return the file.

    Raises:
        StoreError: the folder belongs to another account.
    """
    path = folder / KEY_FILE
    try:
        folder.chmod(0o700)
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(f"{key}\n")
    except OSError as error:
        raise StoreError(f"{path}: the key cannot be written for you alone ({error.strerror}).") from error
    return path


class Guard:
    """Wraps Prefect's server and the page: refuses the names of other machines and the web pages of other sites.

    Args:
        origins: addresses at which the server's own pages are opened.
    """

    def __init__(self, app: ASGIApp, origins: Iterable[str]) -> None:
        self._app, self._origins = app, frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        why = None if scope["type"] == "lifespan" else self._refusal(Headers(scope=scope))
        if why is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await PlainTextResponse(why, 403)(scope, receive, send)

    def _refusal(self, headers: Headers) -> str | None:
        """Return why a request is refused; None if it is not."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or host_name(hosts[0]) not in LOCAL:
            return "only requests to a name of this machine are answered."
        if any(origin not in {f"http://{hosts[0]}", *self._origins} for origin in origins):
            return "only requests from the server's own pages are answered."
        return None
