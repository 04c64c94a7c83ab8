"""Guards a service's server with two random keys.

The service key is Prefect's auth string. The page key reads, starts, cancels, pauses and resumes what is served.

Invariants: no key is a process argument; only the owner can read the page key's file; a request needs a local Host, no
foreign Origin, and a key below /api (except ``/api/health``).
"""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from curation.records import StoreError
from curation.server_guard import LOCAL, basic_credentials, host_name, is_same

SERVER_KEY, CLIENT_KEY, PAGE_KEY = "PREFECT_SERVER_API_AUTH_STRING", "PREFECT_API_AUTH_STRING", "GOLDILOCKS_PAGE_KEY"
"""Environment variables: the service key of server and clients, and the page key."""

KEY_FILE = "key"  # the page key's file
MAX_BODY = 1 << 20  # bytes of a request with the page key

_RUN = r"[0-9a-fA-F-]{36}"
_READS = re.compile(r"/api/(?!block_).*")
_QUERIES = re.compile(
    r"/api/(?!block_)(?:[\w-]+/)*(?:filter|filter/next|count|history|paginate|lateness|count-by/[\w-]+|next-runs)"
    r"|/api/ui/[\w/-]+"
)
"""POST requests that only read."""
_STARTS = re.compile(rf"/api/deployments/{_RUN}/create_flow_run")
_STATES = re.compile(rf"/api/flow_runs/{_RUN}/set_state")
_PAUSES = re.compile(rf"/api/deployments/{_RUN}/(?:pause|resume)_deployment")
_SOCKETS = ("/api/events/out", "/api/logs/out")  # web sockets that only send

_SETTABLE = ("SCHEDULED", "CANCELLING")


@dataclass(frozen=True, slots=True)
class Keys:
    """A service's two keys, hidden in its `repr`."""

    service: str = field(repr=False)
    page: str = field(repr=False)


def new_keys() -> Keys:
    """Return random keys."""
    return Keys(secrets.token_urlsafe(32), secrets.token_urlsafe(32))


def write_key(folder: Path, key: str) -> Path:
    """Write the page key's file, readable only by its owner."""
    path = folder / KEY_FILE
    try:
        folder.chmod(0o700)
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(f"{key}\n")
    except OSError as error:
        raise StoreError(
            f"{path}: the key cannot be written so that only you can read it ({error.strerror})."
        ) from error
    return path


class Guard:
    """Refuses foreign hosts, origins and requests without a key.

    Args:
        origins: the server's own pages.
    """

    def __init__(self, app: ASGIApp, keys: Keys, origins: Iterable[str]) -> None:
        self._app, self._keys, self._origins = app, keys, frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            if self._foreign(Headers(scope=scope)) is not None:
                await send({"type": "websocket.close", "code": 1008})
            else:
                await self._app(scope, self._translated(scope["path"], receive), send)
        else:
            await self._answer(Request(scope, receive), send)

    def _foreign(self, headers: Headers) -> str | None:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or host_name(hosts[0]) not in LOCAL:
            return "only names of this machine are answered."
        if any(origin not in {f"http://{hosts[0]}", *self._origins} for origin in origins):
            return "only the server's own pages may ask."
        return None

    async def _answer(self, request: Request, send: Send) -> None:
        path, headers, receive = str(request.scope["path"]), request.headers, request.receive
        refusal: Response | None = None
        if (why := self._foreign(headers)) is not None:
            refusal = PlainTextResponse(why, 403)
        elif path.startswith("/api/") and request.method != "OPTIONS" and path != "/api/health":
            given = basic_credentials(headers.get("authorization", ""))
            if is_same(given, self._keys.page):
                body = await _body(request)
                if body is None or not visitor_may(request.method, path, body):
                    refusal = _refusal("the page's key shows and starts runs; it changes nothing else.", 403, headers)
                kept = [(name, value) for name, value in request.scope["headers"] if name != b"authorization"]
                own = b"Basic " + base64.b64encode(self._keys.service.encode())
                request.scope["headers"] = [*kept, (b"authorization", own)]
                receive = _replayed(body or b"", request.receive)
            elif not is_same(given, self._keys.service):
                refusal = _refusal("a key is needed.", 401, headers)
        await (refusal or self._app)(request.scope, receive, send)

    def _translated(self, path: str, receive: Receive) -> Receive:
        """Exchange the page key on sockets that only send."""

        async def translated() -> Message:
            message = await receive()
            if path in _SOCKETS and message["type"] == "websocket.receive" and (text := message.get("text")):
                with suppress(ValueError, AttributeError):
                    given = json.loads(text)
                    if given.get("type") == "auth" and is_same(str(given.get("token")), self._keys.page):
                        return {**message, "text": json.dumps({**given, "token": self._keys.service})}
            return message

        return translated


def visitor_may(method: str, path: str, body: bytes) -> bool:
    """Return whether the page key allows an API request."""
    if method in ("GET", "HEAD"):
        return _READS.fullmatch(path) is not None
    if method != "POST":
        return False
    if _QUERIES.fullmatch(path) or _PAUSES.fullmatch(path):
        return True
    try:
        given = json.loads(body or b"{}")
    except ValueError:
        return False
    if not isinstance(given, dict):
        return False
    if _STARTS.fullmatch(path):
        return given.get("state") is None or _settable(given["state"])
    return _STATES.fullmatch(path) is not None and _settable(given.get("state"))


def _settable(state: object) -> bool:
    """Return whether a state is a retry or cancellation without data, which could name files to unpickle."""
    return isinstance(state, Mapping) and state.get("type") in _SETTABLE and state.get("data") is None


def _refusal(why: str, status: int, headers: Headers) -> Response:
    """Return a refusal readable under either local name."""
    origin = headers.get("origin")
    return PlainTextResponse(why, status, {"Access-Control-Allow-Origin": origin, "Vary": "Origin"} if origin else None)


async def _body(request: Request) -> bytes | None:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            return None
    return body


def _replayed(body: bytes, receive: Receive) -> Receive:
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def replayed() -> Message:
        return next(messages, None) or await receive()

    return replayed
