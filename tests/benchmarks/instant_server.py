"""A server of a process of its own that answers at once: what it costs is little beside what asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import cast


def answer_at_once(content_for: Callable[[bytes, bytes], bytes], port: Connection) -> None:
    """Answer requests until killed; ``port`` receives the port.

    Args:
        content_for: a response's body, of a request's head and body.
    """

    class Answering(asyncio.Protocol):
        """One connection; requests come one after another, each perhaps in pieces."""

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
            content = content_for(head, body)
            self._to.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content))

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0, backlog=1024)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())
