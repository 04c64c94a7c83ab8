"""Attempts that go to a server together are those that go alone: their seeds follow each other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from curation.policies.sample_groups import Sampled, SampleGroups
from curation.records import Completion, PolicyError, PromptRequest, RequestRefused
from tests.curation.policies.conftest import asked


class Server:
    """Draws sample i of a request with the seed of its first plus i, as vLLM does; index 5 is refused alone."""

    def __init__(self) -> None:
        self.requests: list[tuple[int, int]] = []
        self.cancelled = 0
        self.failure: Exception | None = None
        self.go = asyncio.Event()

    async def ask(self, problem: PromptRequest, first: int, count: int) -> Sequence[Sampled]:
        self.requests.append((first, count))
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.failure is not None:
            raise self.failure
        refused = RequestRefused("content_filter", "cut off")
        return [
            refused if index == 5 else Completion(f"{problem.id} {index}", "stop", 1)
            for index in range(first, first + count)
        ]


async def drawn(most: int, turns: Sequence[Sequence[int]]) -> tuple[dict[int, object], list[tuple[int, int]]]:
    """What each index got, asked for in so many turns, and the requests."""
    server, found = Server(), dict[int, object]()
    groups = SampleGroups(most, server.ask)
    server.go.set()
    for turn in turns:
        results = await asyncio.gather(*(groups.sample(asked(), index) for index in turn), return_exceptions=True)
        found |= dict(zip(turn, map(str, results), strict=True))
    return found, server.requests


def test_how_attempts_are_grouped_changes_none_of_them() -> None:
    alone, single = asyncio.run(drawn(1, [range(8)]))
    assert single == [(index, 1) for index in range(8)]
    for most, turns, requests in [
        (8, [range(8)], [(0, 8)]),
        (3, [range(8)], [(0, 3), (3, 3), (6, 2)]),
        (8, [[4, 1, 0], [2, 3, 7, 6, 5]], [(0, 2), (4, 1), (2, 2), (5, 3)]),
    ]:
        found, sent = asyncio.run(drawn(most, turns))
        assert (dict(sorted(found.items())), sent) == (alone, requests)


def test_a_request_is_cancelled_when_nobody_waits_for_any_of_it() -> None:
    async def work() -> None:
        server = Server()
        groups = SampleGroups(4, server.ask)
        tasks = [asyncio.create_task(groups.sample(asked(), index)) for index in range(4)]
        while not server.requests:
            await asyncio.sleep(0)
        for task in tasks[:3]:
            task.cancel()
        await asyncio.gather(*tasks[:3], return_exceptions=True)
        assert not server.cancelled
        server.go.set()
        assert await tasks[3] == Completion(f"{asked().id} 3", "stop", 1)

        server.go.clear()
        task = asyncio.create_task(groups.sample(asked(1), 0))
        while len(server.requests) < 2:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        while not server.cancelled:
            await asyncio.sleep(0)

    asyncio.run(work())


def test_what_fails_fails_for_all_that_wait() -> None:
    async def work() -> None:
        server = Server()
        server.failure = PolicyError("no server is alive")
        server.go.set()
        groups = SampleGroups(4, server.ask)
        results = await asyncio.gather(*(groups.sample(asked(), n) for n in range(4)), return_exceptions=True)
        assert [str(result) for result in results] == ["no server is alive"] * 4

    asyncio.run(work())
