"""Checks of Host, Origin and key for all servers."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})
"""This machine's names."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class KeyGuard:
    """Requires the key or, if there is none, a local Host and no Origin.

    The key is a bearer token or a URL's password. ``/health`` is open.
    """

    def __init__(self, app: App, key: str | None) -> None:
        self._app, self._key = app, key

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        status = 200 if scope["type"] == "lifespan" or scope.get("path") == "/health" else self._status(scope)
        if status == 200:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            body = b"a key is needed" if status == 401 else b"only this machine is answered without a key"
            await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": body})

    def _status(self, scope: Message) -> int:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if self._key:
            return 200 if is_same(given_key(headers.get("authorization", "")), self._key) else 401
        return 200 if host_name(headers.get("host", "")) in LOCAL and "origin" not in headers else 403


def host_name(host: str) -> str:
    """Return a Host header's name without port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:  # of brackets
        return ""


def is_same(secret: str, expected: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(secret.encode(), expected.encode())


def given_key(authorization: str) -> str:
    """Return an Authorization header's bearer token or password."""
    scheme, _, word = authorization.partition(" ")
    return word if scheme.lower() == "bearer" else basic_credentials(authorization).partition(":")[2]


def basic_credentials(authorization: str) -> str:
    """Return an Authorization header's ``name:password``."""
    scheme, _, word = authorization.partition(" ")
    with suppress(binascii.Error, UnicodeDecodeError):
        return base64.b64decode(word, validate=True).decode() if scheme.lower() == "basic" else ""
    return ""
