"""Which of several servers gets the next request, and which of them are alive.

Invariants:
  - a request goes to the living server with the fewest requests of ours outstanding, and no server has more than its
    limit;
  - a server that broke a connection gets nothing more until it has answered a probe; probing starts at once and
    slows down from one second to thirty;
  - where no server lives, requests wait; after ``give_up_s`` they fail, with what was wrong with each server.

This module knows nothing of what is asked; a probe is a function that its user gives.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from curation.records import PolicyError

_FIRST_PROBE_S, _LAST_PROBE_S = 1.0, 30.0


class TemporaryFailure(Exception):
    """A server cannot answer for now, and another try may do; the text says why."""


@dataclass(slots=True)
class Server:
    """One server: its requests in flight, its requests so far, and its last failure."""

    url: str
    outstanding: int = 0
    requests: int = 0
    alive: bool = True
    trouble: str = ""
    paused_until: float = 0.0
    """By the monotonic clock: it asked to be left alone until then (`Retry-After`)."""


class Servers:
    """The servers of one policy.

    Args:
        limit: requests outstanding per server.
        give_up_s: seconds without a living server after which requests fail.
        probe: raises `TemporaryFailure` where the server at an address cannot answer for now, `PolicyError` where it
            never will.
    """

    def __init__(
        self, urls: Sequence[str], limit: int, give_up_s: float, probe: Callable[[str], Awaitable[None]]
    ) -> None:
        self.all = [Server(url.rstrip("/")) for url in urls]
        self._limit = limit
        self._give_up_s = give_up_s
        self._probe = probe
        self._changed = asyncio.Condition()
        self._probing: dict[str, asyncio.Task[None]] = {}
        self._all_dead_since: float | None = None

    async def greet(self) -> None:
        """Probe every server once.

        Raises:
            PolicyError: not one answers, or one never will.
        """
        troubles = await asyncio.gather(*(self._probe_failure(server.url) for server in self.all))
        for server, trouble in zip(self.all, troubles, strict=True):
            if trouble is not None:
                self.suspect(server, trouble)
        if not any(server.alive for server in self.all):
            await self.close()
            raise PolicyError(f"no server answers: {self._troubles()}.")

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Server]:
        """Yield a server with room, for one request; wait until there is one.

        Raises:
            PolicyError: no server has been alive for too long.
        """
        server = await self._free_server()
        server.outstanding += 1
        server.requests += 1
        try:
            yield server
        finally:
            server.outstanding -= 1
            async with self._changed:
                self._changed.notify_all()

    def suspect(self, server: Server, trouble: str) -> None:
        """Give a server nothing more until it has answered a probe."""
        server.trouble = trouble
        if not server.alive:
            return
        server.alive = False
        if not any(other.alive for other in self.all):
            self._all_dead_since = time.monotonic()
        self._probing[server.url] = asyncio.create_task(self._revive(server))

    async def close(self) -> None:
        """End all probing."""
        tasks = list(self._probing.values())
        self._probing.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _probe_failure(self, url: str) -> str | None:
        """Probe a server; return what keeps it from answering for now, or None."""
        try:
            await self._probe(url)
        except TemporaryFailure as failure:
            return str(failure)
        return None

    async def _free_server(self) -> Server:
        while True:
            now = time.monotonic()
            room = [server for server in self.all if server.alive and server.outstanding < self._limit]
            ready = [server for server in room if server.paused_until <= now]
            if ready:
                return min(ready, key=lambda server: (server.outstanding, server.requests))
            if any(server.alive for server in self.all):
                wait = min((server.paused_until - now for server in room), default=None)
            else:
                wait = self._give_up_s - (now - (self._all_dead_since or now))
                if wait <= 0:
                    raise PolicyError(
                        f"no server has answered for {self._give_up_s:g} s: {self._troubles()}; the run can be resumed."
                    )
            await self._wait_for_change(wait)

    async def _wait_for_change(self, at_most_s: float | None) -> None:
        """Wait until something has changed, at most so many seconds."""
        try:
            async with asyncio.timeout(at_most_s), self._changed:
                await self._changed.wait()
        except TimeoutError:
            return

    async def _revive(self, server: Server) -> None:
        pause = _FIRST_PROBE_S
        while True:
            try:
                await self._probe(server.url)
                break
            except (TemporaryFailure, PolicyError) as failure:  # also: it answers, but with another model, or no key
                server.trouble = str(failure)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LAST_PROBE_S)
        server.alive = True
        self._all_dead_since = None
        self._probing.pop(server.url, None)
        async with self._changed:
            self._changed.notify_all()

    def _troubles(self) -> str:
        return "; ".join(f"{server.url}: {server.trouble}" for server in self.all)
