"""The one reader of requests of the benchmarks' servers: a request's head and body, and the bytes of its response."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast


class Answering(asyncio.Protocol):
    """One connection; requests come one after another, each perhaps in pieces.

    Args:
        answer: is given a request's head, its body, and what sends a response's body, at once or later.
    """

    def __init__(self, answer: Callable[[bytes, bytes, Callable[[bytes], None]], None]) -> None:
        self._answer = answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._to, self._read = cast(asyncio.WriteTransport, transport), b""

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, end, body = self._read.partition(b"\r\n\r\n")
        place = head.lower().find(b"content-length:")
        length = int(head[place + 15 :].split(b"\r\n", 1)[0]) if place >= 0 else 0
        if not end or len(body) < length:
            return
        self._read = b""
        self._answer(head, body, self._send)

    def _send(self, content: bytes) -> None:
        self._to.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content))
