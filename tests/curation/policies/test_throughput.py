"""How much of a flaky server's capacity the client uses: the whole client, by a clock that jumps to the next event."""

import asyncio
import random
import selectors
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from curation.config import ServerSettings
from curation.policies import client as clients
from curation.policies import servers
from curation.policies.client import ServerClient, ServerResponse
from curation.policies.servers import Servers

PLACES, ANSWER_S, LASTS_S = 24, 0.25, 30.0
URL = "http://flaky"
ANSWER = b"x" * 1000
POSSIBLE = PLACES / ANSWER_S * LASTS_S


class JumpingSelector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Waits for no time: what it was to wait is added to the clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += max(timeout or 0.0, 0.0)
        return super().select(0)


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[asyncio.AbstractEventLoop]:
    selector = JumpingSelector()
    loop = asyncio.SelectorEventLoop(selector)
    monkeypatch.setattr(loop, "time", lambda: selector.now)
    for module in (clients, servers):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: selector.now))
    yield loop
    loop.close()


class FlakyServer:
    """Takes `PLACES` requests at once and refuses, or with ``queues`` keeps waiting, whatever comes beyond them.

    A share of 429 and of 5xx comes by chance, at once, whatever the load.
    """

    def __init__(self, busy: float, broken: float, retry_after: str | None, *, queues: bool) -> None:
        self.shares, self.retry_after, self.queues = (busy, broken), retry_after, queues
        self.places = asyncio.Semaphore(PLACES)
        self.chance = random.Random(1)
        self.answered = self.refused = 0

    async def post(self, url: str, _body: Any, _answer_s: float | None = None) -> ServerResponse:
        drawn, (busy, broken) = self.chance.random(), self.shares
        if drawn < busy or (self.places.locked() and not self.queues):
            self.refused += 1
            return ServerResponse(429, b"busy", url, self.retry_after)
        if drawn < busy + broken:
            return ServerResponse(self.chance.choice([500, 502, 503]), b"broken", url, self.retry_after)
        async with self.places:
            await asyncio.sleep(ANSWER_S)
        self.answered += 1
        return ServerResponse(200, ANSWER, url)

    async def get(self, url: str) -> ServerResponse:
        return ServerResponse(200, b'{"data": [{"id": "m"}]}', url)


async def _welcome(_url: str, _context: int | None) -> None:
    return


def asked(
    loop: asyncio.AbstractEventLoop,
    monkeypatch: pytest.MonkeyPatch,
    in_flight: int,
    shares: tuple[float, float],
    retry_after: str | None = None,
    *,
    queues: bool = False,
) -> FlakyServer:
    """Return the server, after half a minute of as many requests at once as the client lets through."""
    settings = ServerSettings.model_validate({"urls": (URL,), "in_flight": in_flight})
    server = FlakyServer(*shares, retry_after, queues=queues)
    monkeypatch.setattr(ServerClient, "post", staticmethod(server.post))
    monkeypatch.setattr(ServerClient, "get", staticmethod(server.get))

    async def ask() -> None:
        async with ServerClient(settings, "m", welcome=_welcome) as client:

            async def work() -> None:
                while loop.time() < LASTS_S:
                    await client.ask("/chat", dict, lambda _server, response: response.status, "x")

            workers = [asyncio.ensure_future(work()) for _ in range(in_flight)]
            await asyncio.sleep(LASTS_S)
            for worker in workers:
                worker.cancel()
            ends = await asyncio.gather(*workers, return_exceptions=True)
            assert all(end is None or isinstance(end, asyncio.CancelledError) for end in ends), ends

    random.seed(7)
    loop.run_until_complete(ask())
    return server


@pytest.mark.parametrize(("in_flight", "queues"), [(16, False), (64, False), (64, True)])
def test_refusals_by_chance_do_not_take_the_throughput_away(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch, in_flight: int, *, queues: bool
) -> None:
    server = asked(loop, monkeypatch, in_flight, (0.05, 0.035), queues=queues)
    assert server.answered >= 0.5 * POSSIBLE


def test_an_overloaded_server_is_asked_for_about_what_it_bears_and_gets_the_pause_that_it_asks_for(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = asked(loop, monkeypatch, 256, (0.0, 0.0))
    assert server.answered >= 0.7 * POSSIBLE
    assert server.refused < 0.5 * server.answered
    assert asked(loop, monkeypatch, 256, (1.0, 0.0), "15").refused < 256


SEATS = 32


async def _probe(_: str) -> None:
    """Every server lives."""


def eight() -> Servers:
    return Servers([f"http://127.0.0.1:{8000 + number}" for number in range(8)], SEATS, 1.0, _probe)


def test_a_request_waits_for_room_in_its_turn_and_a_dead_server_gets_none() -> None:
    async def run() -> None:
        servers = eight()
        gone = servers.all[0]
        gone.alive = False
        held = [await servers.acquire() for _ in range(7 * SEATS)]
        assert gone not in held
        waiting = [asyncio.create_task(servers.acquire()) for _ in range(3)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        servers.release(held[5])
        assert await waiting[0] is held[5]
        assert not waiting[1].done()
        waiting[1].cancel()
        await asyncio.sleep(0)
        servers.release(held[6])
        assert await waiting[2] is held[6]

    asyncio.run(run())


def test_servers_that_failed_at_a_request_are_asked_again_only_if_no_other_lives() -> None:
    async def run() -> None:
        servers = eight()
        tried = {server.url for server in servers.all[1:]}
        assert await servers.acquire(tried) is servers.all[0]
        servers.all[0].alive = False
        assert (await servers.acquire(tried)).url in tried

    asyncio.run(run())
