"""Servers asked by several processes: which of them asks, and whether some are killed, is not to be seen."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curation.policies.channels import ProcessChannel
from curation.policies.endpoint import Endpoint
from curation.policies.processes import AskingProcesses
from curation.records import Completion, PolicyError, RequestRefused
from tests.curation.policies.conftest import asked
from tests.curation.policies.test_endpoint import StandIn, settings
from tests.waiting import until


def pid_of(process: Any) -> int:
    """The number of an asking process of this machine."""
    assert isinstance(process.channel, ProcessChannel)
    return process.channel.process.pid


ATTEMPTS = [(number, index) for number in range(12) for index in range(4)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StandIn]:
    (tmp_path / "says.json").write_text('[["poisoned", 400]]')
    server = StandIn(tmp_path / "journal.jsonl", plan="slow " * 200, says=tmp_path / "says.json")
    yield server
    server.stop()


def test_processes_draw_what_one_draws_however_many_are_killed(server: StandIn) -> None:
    one = settings(server, per_server=8)

    async def alone() -> list[Completion]:
        async with Endpoint(one, Path()) as policy:
            return await asyncio.gather(*(policy.answer(asked(*attempt[:1]), attempt[1]) for attempt in ATTEMPTS))

    async def together() -> list[Completion]:
        policy = AskingProcesses(one, Path(), None, 2)
        assert policy.key == Endpoint(one, Path()).key
        async with policy:
            tasks = [asyncio.create_task(policy.answer(asked(number), index)) for number, index in ATTEMPTS]
            for process in policy.processes:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                os.kill(pid_of(process), signal.SIGKILL)
            answers = await asyncio.gather(*tasks)
            with pytest.raises(RequestRefused, match="the prompt is poisoned") as refused:
                await policy.answer(asked(99, "a poisoned prompt"), 0)
            assert refused.value.kind == "400"
        assert all(process.channel is None for process in policy.processes)
        return answers

    assert asyncio.run(together()) == asyncio.run(alone())


def test_a_process_that_is_left_while_it_starts_again_leaves_nothing_open(server: StandIn) -> None:
    async def work() -> None:
        policy = AskingProcesses(settings(server), Path(), None, 1)
        async with policy:
            (process,) = policy.processes
            first = process.channel
            os.kill(pid_of(process), signal.SIGKILL)
            await until(lambda: process.channel not in (first, None))
        assert process.channel is None

    asyncio.run(work())
    gc.collect()  # what is still open says so, and warnings are errors


def test_cancelling_closes_the_request(tmp_path: Path) -> None:
    server = StandIn(tmp_path / "journal.jsonl", plan="hang")

    async def work() -> None:
        async with AskingProcesses(settings(server), Path(), None, 2) as policy:
            task = asyncio.create_task(policy.answer(asked(), 0))
            await until(lambda: server.seeds("asked"))
            task.cancel()
            await until(lambda: server.seeds("closed"))
            assert await policy.answer(asked(1), 0) is not None

    try:
        asyncio.run(work())
    finally:
        server.stop()


def test_what_ends_a_run_ends_it_from_a_process_too(tmp_path: Path) -> None:
    server = StandIn(tmp_path / "journal.jsonl", model="another")

    async def work() -> None:
        policy = AskingProcesses(settings(server), Path(), None, 2)
        try:
            async with policy:
                raise AssertionError
        finally:
            assert all(process.channel is None for process in policy.processes)

    try:
        with pytest.raises(PolicyError, match="holds no model 'm', but another"):
            asyncio.run(work())
    finally:
        server.stop()


class Broken:
    """A way to an asker that breaks by an error that nobody expects, as soon as something was asked."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    def send(self, _messages: list[tuple[Any, ...]]) -> None:
        self.asked.set()

    async def receive(self) -> Any:
        await self.asked.wait()
        raise RuntimeError("the way is gone")

    def close(self) -> None:
        return None


def test_a_way_that_breaks_by_an_unknown_error_leaves_nobody_waiting() -> None:
    async def open_channel(_opening: object) -> Broken:
        return Broken()

    async def ask() -> None:
        one = settings("http://127.0.0.1:9/v1")
        async with AskingProcesses(one, Path(), None, 1, open_channel) as policy:
            for _ in range(2):  # the one that waits, and whoever comes later
                with pytest.raises(PolicyError, match="the way is gone"):
                    await policy.answer(asked(1), 0)

    asyncio.run(ask())
