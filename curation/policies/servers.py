"""The choice of a server for each request.

Invariants: a request goes to the least busy server below its limit, preferably one not tried yet; a server that
broke a connection gets nothing until a probe succeeds.

Limits adapt by AIMD (Chiu and Jain 1989), falling only if `OVERLOAD` of a window is refused.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from curation.records import PolicyError

_FIRST_PROBE_S, _LAST_PROBE_S = 1.0, 30.0

OVERLOAD, WINDOW = 0.25, 32


class AdaptiveLimit:
    """A server's limit of concurrent requests, up to ``cap``."""

    def __init__(self, cap: int) -> None:
        self._cap, self._limit = cap, float(cap)
        self._cut_until = self.latency_s = 0.0
        self._outcomes = self._refusals = 0

    @property
    def value(self) -> int:
        """Return the current limit."""
        return int(self._limit)

    def answered(self, seconds: float, outstanding: int) -> None:
        """Count an answer; ``outstanding`` includes it."""
        self.latency_s = seconds if not self.latency_s else 0.9 * self.latency_s + 0.1 * seconds
        self._count_outcome()
        if outstanding >= self.value and self._limit < self._cap:  # fewer requests do not show its capacity
            self._limit = min(self._cap, self._limit + 1.0 / self._limit)

    def refused(self, now: float) -> bool:
        """Count a failure; return whether the server is overloaded."""
        if now < self._cut_until:
            return True
        self._count_outcome()
        self._refusals += 1
        if self._refusals < OVERLOAD * max(WINDOW, self.value):
            return False
        self._limit = max(1.0, self._limit * max(0.5, 1 - self._refusals / self._outcomes))
        self._cut_until = now + self.latency_s
        self._outcomes = self._refusals = 0
        return True

    def _count_outcome(self) -> None:
        if self._outcomes >= max(WINDOW, self.value):
            self._outcomes = self._refusals = 0
        self._outcomes += 1


class TemporaryFailure(Exception):
    """A failure that a retry may fix.

    Attributes:
        kind: set if the request may be the cause.
        retry_after_s: the requested pause.
    """

    def __init__(self, why: str, kind: str = "", retry_after_s: float = 0.0) -> None:
        super().__init__(why)
        self.kind, self.retry_after_s = kind, retry_after_s


@dataclass(slots=True, eq=False)
class Server:
    """A server; ``busy`` counts statuses such as 429, ``failed`` those from 500 and missing answers."""

    url: str
    limit: AdaptiveLimit
    outstanding: int = 0
    requests: int = 0
    busy: int = 0
    failed: int = 0
    alive: bool = True
    trouble: str = ""
    paused_until: float = 0.0
    """By the monotonic clock (`Retry-After`)."""


class Servers:
    """The servers of one policy.

    Args:
        in_flight: max concurrent requests per server.
        give_up_s: seconds without a living server until requests fail.
        probe: raises `TemporaryFailure`, or `PolicyError` if a server can never answer.
    """

    def __init__(
        self,
        urls: Sequence[str],
        in_flight: int,
        give_up_s: float,
        probe: Callable[[str], Awaitable[None]],
    ) -> None:
        self.all = [Server(url.rstrip("/"), AdaptiveLimit(in_flight)) for url in urls]
        self._give_up_s = give_up_s
        self._probe = probe
        self._waiting: dict[object, asyncio.Future[None]] = {}  # by ticket, in order
        self._probing: dict[str, asyncio.Task[None]] = {}
        self._all_dead_since: float | None = None

    async def greet(self) -> None:
        """Probe every server.

        Raises:
            PolicyError: none answers, or one never will.
        """
        outcomes = await asyncio.gather(*(self._probe(server.url) for server in self.all), return_exceptions=True)
        for server, outcome in zip(self.all, outcomes, strict=True):
            if isinstance(outcome, TemporaryFailure):
                self.suspect(server, str(outcome))
            elif outcome is not None:
                raise outcome
        if not any(server.alive for server in self.all):
            await self.close()
            raise PolicyError(f"no server answers: {self._troubles()}.")

    async def acquire(self, avoided: Collection[str] = ()) -> Server:
        """Wait for a server with room; call `release` afterwards.

        Args:
            avoided: URLs used only if no other server is alive.

        Raises:
            PolicyError: no server was alive for too long.
        """
        ticket, server = object(), None if self._waiting else self._free_server(avoided)
        try:
            while server is None:
                turn = self._waiting[ticket] = asyncio.get_running_loop().create_future()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._patience_s()):
                        await turn
                server = self._free_server(avoided)
        finally:
            self._waiting.pop(ticket, None)
            if server is None:
                self._wake()  # the turn goes to the next
        server.outstanding += 1
        server.requests += 1
        if self._waiting and self._free_server(()) is not None:
            self._wake()
        return server

    def release(self, server: Server) -> None:
        """Count the end of a request."""
        server.outstanding -= 1
        self._wake()

    def suspect(self, server: Server, trouble: str) -> None:
        """Send a server nothing until a probe succeeds."""
        server.trouble = trouble
        if not server.alive:
            return
        server.alive = False
        if not any(known.alive for known in self.all):
            self._all_dead_since = time.monotonic()
            self._wake(None)
        self._probing[server.url] = asyncio.create_task(self._revive(server))

    async def close(self) -> None:
        """End all probing."""
        tasks = list(self._probing.values())
        self._probing.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _free_server(self, avoided: Collection[str]) -> Server | None:
        now = time.monotonic()
        living = [server for server in self.all if server.alive]
        preferred = [server for server in living if server.url not in avoided] if avoided else living
        ready = [
            server
            for server in preferred or living
            if server.outstanding < server.limit.value and server.paused_until <= now
        ]
        return min(ready, key=lambda server: (server.outstanding, server.requests), default=None)

    def _patience_s(self) -> float | None:
        """Return the max wait in seconds."""
        now = time.monotonic()
        living = [server for server in self.all if server.alive]
        if living:
            pauses = [server.paused_until - now for server in living if server.paused_until > now]
            return min(pauses, default=None)
        wait = self._give_up_s - (now - (self._all_dead_since or now))
        if wait <= 0:
            raise PolicyError(
                f"no server has answered for {self._give_up_s:g} s: {self._troubles()}; the run can be resumed."
            )
        return wait

    def _wake(self, limit: int | None = 1) -> None:
        """Wake waiting callers, all if ``limit`` is None."""
        for turn in islice((turn for turn in self._waiting.values() if not turn.done()), limit):
            turn.set_result(None)

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
        self._wake(None)

    def _troubles(self) -> str:
        return "; ".join(f"{server.url}: {server.trouble}" for server in self.all)
