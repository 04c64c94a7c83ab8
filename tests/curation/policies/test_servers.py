"""Which server gets a request, without any server: eight that always live, and requests that end in their order."""

from __future__ import annotations

import asyncio

from curation.policies.servers import Servers

SEATS = 32


async def _probe(_: str) -> None:
    """Every server lives."""


def eight() -> Servers:
    urls = [f"http://127.0.0.1:{8000 + number}" for number in range(8)]
    return Servers(urls, SEATS, 1.0, _probe)


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
