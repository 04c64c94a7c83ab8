"""Ways to whoever asks the servers for this process: messages to it, answers from it, and when it has gone.

`ProcessChannel` is a process of this machine behind a socket. A cluster has ways of its own (`flows.run.runner_ray`).
"""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from curation.config import EndpointPolicy
from curation.prompts import Prompt
from curation.records import PolicyError

Opening = tuple[EndpointPolicy, Path, Prompt | None]
"""What `curation.policies.endpoint.Endpoint` is made of over there."""

_LENGTH_BYTES = 4


class Channel(Protocol):
    """A way to one asker that has greeted its servers."""

    def send(self, messages: list[tuple[Any, ...]]) -> None:
        """Send messages, as `curation.policies.asking_process.AnsweringLoop` takes them."""
        ...

    async def receive(self) -> Any | None:
        """Return what the asker tells next; None once it has gone."""
        ...

    def close(self) -> None:
        """End the asker; a second call does nothing."""
        ...


OpenChannel = Callable[[Opening], Awaitable[Channel | None]]
"""Starts an asker and returns the way to it once it is ready; None where it died. Raises PolicyError where the servers
cannot be asked."""


class ProcessChannel:
    """An asking process of this machine, which ends when its connection does."""

    def __init__(
        self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.process, self._reader, self._writer = process, reader, writer

    def send(self, messages: list[tuple[Any, ...]]) -> None:
        """Write messages, without waiting for the other side."""
        self._writer.write(frame(messages))

    async def receive(self) -> Any | None:
        """Return what the process wrote next; None where it died."""
        return await read_frame(self._reader)

    def close(self) -> None:
        """End the process."""
        self._writer.close()
        self.process.kill()
        self.process.wait()


async def open_process(opening: Opening) -> ProcessChannel | None:
    """Start an asking process and return the way to it; None where it died. What comes to nothing is ended.

    Raises:
        PolicyError: it cannot ask the servers.
    """
    ours, theirs = socket.socketpair()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    with ExitStack() as on_failure:
        on_failure.callback(ours.close)
        with theirs:
            command = [sys.executable, "-m", "curation.policies.asking_process", str(theirs.fileno())]
            process = subprocess.Popen(command, pass_fds=(theirs.fileno(),), env=environment)
        on_failure.callback(process.wait)
        on_failure.callback(process.kill)
        reader, writer = await asyncio.open_connection(sock=ours, limit=2**30)
        channel = ProcessChannel(process, reader, writer)
        on_failure.pop_all()
        on_failure.callback(channel.close)  # also where this is cancelled
        writer.write(frame(opening))
        status = await channel.receive()
        if status is None:
            return None
        if status[0] != "ready":
            raise PolicyError(status[1])
        on_failure.pop_all()
        return channel


def frame(content: Any) -> bytes:
    """Return a message between the processes: its length, then the pickled content."""
    pickled = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    return len(pickled).to_bytes(_LENGTH_BYTES, "big") + pickled


async def read_frame(reader: asyncio.StreamReader) -> Any | None:
    """Read the next message; None where the other side has gone."""
    try:
        length = await reader.readexactly(_LENGTH_BYTES)
        return pickle.loads(await reader.readexactly(int.from_bytes(length, "big")))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
