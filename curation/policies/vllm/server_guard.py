"""Who may ask a vLLM server that takes weights: an ASGI middleware around all of it, `/health` excepted.

vLLM's own key covers addresses below /v1 and /inference, not those of its development mode, which change weights. With
a key in VLLM_API_KEY every request must carry it; without one it must name this machine and come from no web page.

vLLM imports this in the server's process.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

KEY = "VLLM_API_KEY"
LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class ServerGuard:
    """Refuses who has no key or, where there is no key, who is not on this machine."""

    def __init__(self, app: App) -> None:
        self._app, self._key = app, os.environ.get(KEY)

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
        headers = dict(scope["headers"])
        if self._key:
            given = headers.get(b"authorization", b"")
            return 200 if hmac.compare_digest(given, f"Bearer {self._key}".encode()) else 401
        return 200 if _is_local(headers.get(b"host", b"").decode("latin-1")) and b"origin" not in headers else 403


def _is_local(host: str) -> bool:
    try:
        return urlsplit(f"//{host}").hostname in LOCAL
    except ValueError:  # of brackets
        return False
