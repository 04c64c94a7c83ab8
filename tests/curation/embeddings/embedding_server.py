"""A small server of `/embeddings` in a thread: a text's vector counts its words, so that tests know it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WIDTH = 64


class EmbeddingServer(ThreadingHTTPServer):
    """Answers as its plan says, request by request, then rightly: `ok`, a status, `garbage`, `short` or `nan`.

    Requests with a text that has ``refuses`` in it get a 400, where it is not empty.
    """

    daemon_threads = True

    def __init__(self, plan: str = "", width: int = WIDTH) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan, self.width = plan.split(), width
        self.asked: list[list[str]] = []
        self.refuses = ""
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Return the server's base address."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @property
    def texts(self) -> list[str]:
        """Return all texts that were answered."""
        return [text for texts in self.asked for text in texts]


class Handler(BaseHTTPRequestHandler):
    """Lists one model, and gives vectors, the last text's first."""

    server: EmbeddingServer

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._reply(200, {"data": [{"id": "words"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.path == "/v1/embeddings"
        assert body["model"] == "words"
        with self.server.lock:
            word = self.server.plan.pop(0) if self.server.plan else "ok"
            if self.server.refuses and any(self.server.refuses in text for text in body["input"]):
                word = "400"
            if word == "ok":
                self.server.asked.append(body["input"])
        if word.isdigit():
            return self._reply(int(word), {"error": {"message": "no"}})
        if word == "garbage":
            return self._reply(200, ["?"])
        data = [
            {"index": index, "embedding": vector_of(text, self.server.width)}
            for index, text in enumerate(body["input"])
        ]
        if word == "short":
            data = data[1:]
        if word == "nan":
            data[0]["embedding"] = [float("nan")] * self.server.width
        return self._reply(200, {"data": data[::-1]})

    def _reply(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def vector_of(text: str, width: int = WIDTH) -> list[float]:
    """Return how often words stand in a text, by a hash of each; plus a constant, so that no vector is empty."""
    counts = [0.25] + [0.0] * (width - 1)
    for word in text.lower().split():
        counts[1 + sum(word.encode()) % (width - 1)] += 1
    return counts


@contextmanager
def embedding_server(plan: str = "", width: int = WIDTH) -> Iterator[EmbeddingServer]:
    """Yield a server that answers while the block lasts."""
    server = EmbeddingServer(plan, width)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
