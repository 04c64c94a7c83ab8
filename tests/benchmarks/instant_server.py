"""A server of a process of its own that answers at once: what it costs is little beside what asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection

from tests.benchmarks.http_answers import Answering


def answer_at_once(content_for: Callable[[bytes, bytes], bytes], port: Connection) -> None:
    """Answer requests until killed; ``port`` receives the port.

    Args:
        content_for: a response's body, of a request's head and body.
    """

    def answer(head: bytes, body: bytes, send: Callable[[bytes], None]) -> None:
        send(content_for(head, body))

    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(partial(Answering, answer), "127.0.0.1", 0, backlog=1024)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())
