"""Which server gets a request, without any server: eight that always live, and requests that end in their order."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque

import pytest

from curation.policies.servers import EVEN, AdaptiveLimit, Server, Servers

SEATS, PROBLEMS, ATTEMPTS = 32, 200, 16


async def _probe(_: str) -> None:
    """Every server lives."""


def placed(homes: bool, servers: Servers, in_flight: int) -> list[tuple[int, str]]:
    """The problem and the server of every attempt; as many are under way as fit, the first that began ends first."""

    async def run() -> list[tuple[int, str]]:
        under_way: deque[Server] = deque()
        at = []
        for problem in range(PROBLEMS):
            for _ in range(ATTEMPTS):
                server = await servers.acquire(home=f"problem {problem}" if homes else "")
                under_way.append(server)
                at.append((problem, server.url))
                loads = [one.outstanding for one in servers.all]
                assert max(loads) <= math.ceil(EVEN * sum(loads) / len(loads))
                if len(under_way) == in_flight:
                    servers.release(under_way.popleft())
        return at

    return asyncio.run(run())


def eight() -> Servers:
    urls = [f"http://127.0.0.1:{8000 + number}" for number in range(8)]
    return Servers(urls, lambda: AdaptiveLimit(math.ceil(EVEN * SEATS)), 1.0, _probe)


def together(at: list[tuple[int, str]]) -> float:
    """The share of the attempts at their problem's commonest server."""
    counts: dict[int, Counter[str]] = {}
    for problem, url in at:
        counts.setdefault(problem, Counter())[url] += 1
    return sum(max(counted.values()) for counted in counts.values()) / len(at)


def test_the_attempts_at_a_problem_go_to_one_server_and_no_server_gets_much_more_than_its_part() -> None:
    at = placed(homes=True, servers=eight(), in_flight=8 * SEATS)
    assert together(at) > 0.8
    by_server = Counter(url for _, url in at)
    assert max(by_server.values()) < 1.1 * min(by_server.values())
    assert together(placed(homes=False, servers=eight(), in_flight=8 * SEATS)) < 0.4


def test_a_home_stays_where_it_is_and_a_dead_server_hands_its_homes_to_all_others() -> None:
    async def run() -> None:
        servers = eight()

        async def first(home: str) -> Server:
            server = await servers.acquire(home=home)
            servers.release(server)
            return server

        homes = [f"problem {number}" for number in range(64)]
        before = {home: await first(home) for home in homes}
        assert Counter(server.url for server in before.values()) == {server.url: 8 for server in servers.all}
        assert {home: await first(home) for home in homes} == before
        gone = before["problem 0"]
        gone.alive = False
        after = {home: await first(home) for home in homes}
        assert all((after[home] is before[home]) == (before[home] is not gone) for home in homes)
        heirs = {after[home].url for home in homes if before[home] is gone}
        assert len(heirs) > 1
        gone.alive = True
        assert {home: await first(home) for home in homes} == after  # what was moved stays

    asyncio.run(run())


@pytest.mark.parametrize("problems", [1, 2, 3])
def test_of_few_problems_with_many_attempts_no_server_is_left_out(problems: int) -> None:
    """As an evaluation or a run's end asks: with homes hashed to servers, one of eight got nothing of one problem."""

    async def run() -> list[int]:
        servers = eight()
        for number in range(8 * SEATS):
            await servers.acquire(home=f"problem {number * problems // (8 * SEATS)}")
        return [server.outstanding for server in servers.all]

    loads = asyncio.run(run())
    assert sum(loads) == 8 * SEATS
    assert max(loads) <= math.ceil(EVEN * SEATS)
    assert min(loads) >= SEATS / 2


def test_old_homes_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curation.policies.servers._HOMES", 4)

    async def run() -> list[str]:
        servers = eight()
        for number in range(6):
            await servers.acquire(home=f"problem {number}")
        return list(servers._homes)

    assert asyncio.run(run()) == [f"problem {number}" for number in (2, 3, 4, 5)]
