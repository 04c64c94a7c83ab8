"""A uvicorn server with limited connections and request times."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from curation.records import GoldilocksError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

MAX_CONNECTIONS = 4096
"""At once; further requests get 503."""

REQUEST_S = 60
"""Seconds until a connection's next request must be complete."""

STOP_S = 5
"""Seconds that open requests may take when the server ends."""


class TimedProtocol(H11Protocol):
    """uvicorn's protocol with a deadline for each request."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop()

    def _watch(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_S, self.transport.abort)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def server_of(app: ASGIApp) -> uvicorn.Server:
    """Return an application's server, run by ``run(sockets=[…])``."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=TimedProtocol,
            ws="none",
            lifespan="off",
            log_level="error",
            access_log=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=REQUEST_S,
            timeout_graceful_shutdown=STOP_S,
        )
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free one.

    Raises:
        GoldilocksError: the address cannot be used.
    """
    listening: socket.socket | None = None
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except (OSError, OverflowError) as error:  # OverflowError: no port has this number
        if listening is not None:
            listening.close()
        reason = error.strerror if isinstance(error, OSError) else str(error).rstrip(".")
        raise GoldilocksError(f"{host}:{port} cannot be listened on ({reason}); give another --port.") from error
    return listening


def address_of(listening: socket.socket, key: str | None = None) -> str:
    """Return a socket's URL, with the key as password."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'goldilocks:{key}@' if key else ''}{f'[{host}]' if ':' in host else host}:{port}"
