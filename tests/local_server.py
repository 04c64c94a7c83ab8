"""HTTP servers of this machine in a thread: doubles of others' APIs, and ours."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from curation.http_server import address_of, listen, server_of


class LocalServer:
    """The server; a context manager. ``asked`` is the subclass's, for every request, oldest first."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                return

            def do_GET(self) -> None:
                server.answer(self, b"")

            do_HEAD = do_GET  # noqa: N815 - the server's own names

            def do_POST(self) -> None:
                server.answer(self, self._body())

            do_PUT = do_POST  # noqa: N815 - the server's own names

            def _body(self) -> bytes:
                if self.headers.get("Transfer-Encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                parts = []
                while size := int(self.rfile.readline(), 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        """Answer a request."""
        raise NotImplementedError


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an application of ours for the length of the block, and yield its address."""
    with listen("127.0.0.1", 0) as listening:
        server = server_of(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield address_of(listening)
        finally:
            server.should_exit = True
            thread.join()
