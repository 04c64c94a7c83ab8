"""HTTP servers of this machine in a thread: doubles of others' APIs, and ours."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from curation.http_server import address_of, listen, server_of


class _Threads(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


class LocalServer:
    """The server; a context manager. ``asked`` is the subclass's, for every request, oldest first."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one packet
            disable_nagle_algorithm = True

            def log_message(self, *_: Any) -> None:
                return

            def do_GET(self) -> None:
                server.answer(self, self._body())

            do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815 - the server's own names

            def _body(self) -> bytes:
                if self.headers.get("Transfer-Encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                parts = []
                while size := int(self.rfile.readline(), 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)

        self._server = _Threads(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        """Answer a request."""
        raise NotImplementedError


def send_json(request: BaseHTTPRequestHandler, content: Any) -> None:
    body = json.dumps(content).encode()
    request.send_response(200)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


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
