"""A policy whose servers are asked by several processes: one asking process takes some thousand attempts a second.

    sampler, store, judge (this process)  ⇄  N asking processes, each with its own connections

Attempts are parted by problem, so that what a process knows of one (too long, samples of one request) is known there.
The processes are this machine's, or those of a cluster's nodes: whoever opens the channels decides
(`curation.policies.channels`).

Invariants:
  - the store has one writer, this process: which process asked is not to be seen in what is stored;
  - a process that dies is started again, and what it had not answered is asked again with the same seeds; so killing
    some changes when an attempt is made, never which. One that dies `MOST_STARTS` times without an answer ends the run;
  - the processes end with this one, however it ends: their connection closes.

Not here: asking (`curation.policies.endpoint`); what runs in such a process (`curation.policies.asking_process`).
"""

from __future__ import annotations

import asyncio
import itertools
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from curation.config import EndpointPolicy
from curation.policies.channels import Channel, OpenChannel, Opening, open_process
from curation.policies.endpoint import Endpoint
from curation.prompts import Prompt
from curation.records import AttemptKey, Completion, PolicyError, PromptRequest, RequestRefused

MOST_STARTS = 5


class AskingProcesses:
    """OpenAI-compatible servers under the `Policy` protocol, asked by several processes.

    Args:
        settings, folder, prompt: as of `Endpoint`.
        processes: how many.
        open_channel: starts one and returns the way to it.

    Raises:
        PolicyError: as `Endpoint`.
    """

    def __init__(
        self,
        settings: EndpointPolicy,
        folder: Path,
        prompt: Prompt | None,
        processes: int,
        open_channel: OpenChannel = open_process,
    ) -> None:
        self._endpoint = Endpoint(settings, folder, prompt)
        self.key: AttemptKey = self._endpoint.key
        self.in_flight = settings.in_flight
        share = settings.model_copy(update={"per_server": max(1, -(-settings.most_per_server // processes))})
        self.processes = [_AskingProcess((share, folder, prompt), open_channel) for _ in range(processes)]

    @property
    def about(self) -> Mapping[str, Any]:
        """Return what the store notes beside the key."""
        return self._endpoint.about

    @property
    def hedged(self) -> int:
        """Return how many requests were asked of two servers."""
        return sum(process.hedged for process in self.processes)

    async def __aenter__(self) -> Self:
        has_entered = False
        try:
            started = await asyncio.gather(*(process.start() for process in self.processes), return_exceptions=True)
            for failure in started:
                if failure is not None:
                    raise failure
            has_entered = True
        finally:
            if not has_entered:
                await self.__aexit__(None, None, None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*(process.stop() for process in self.processes))

    async def answer(self, problem: PromptRequest, index: int) -> Completion:
        """Return one attempt; see `Endpoint.answer`."""
        return await self.processes[zlib.crc32(problem.id.encode()) % len(self.processes)].ask(problem, index)


class _AskingProcess:
    """One process, started again whenever it dies, and what it has not answered yet."""

    def __init__(self, opening: Opening, open_channel: OpenChannel) -> None:
        self.hedged = 0
        self.channel: Channel | None = None
        self._opening, self._open_channel = opening, open_channel
        self._numbers = itertools.count()
        self._open: dict[int, tuple[PromptRequest, int, asyncio.Future[Completion]]] = {}
        self._outbox: list[tuple[Any, ...]] = []
        self._following: asyncio.Task[None] | None = None
        self._starts_without_answer = 0
        self._failure = ""

    async def start(self) -> None:
        """Start the process, and wait until its servers are greeted.

        Raises:
            PolicyError: they cannot be asked.
        """
        channel = await self._connect()
        self._following = asyncio.create_task(self._follow(channel))
        self._following.add_done_callback(self._fail_with)

    async def stop(self) -> None:
        """End the process; a second call does nothing."""
        following, self._following = self._following, None
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        self._end()

    async def ask(self, problem: PromptRequest, index: int) -> Completion:
        """Return one attempt; cancelling the call cancels its request."""
        if self._following is None:
            raise PolicyError("servers are asked before they were entered, or after they were left: use `async with`.")
        if self._failure:
            raise PolicyError(self._failure)
        number = next(self._numbers)
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._open[number] = problem, index, future
        self._send(("ask", number, problem, index))
        try:
            return await future
        finally:
            if self._open.pop(number, None) is not None:
                self._send(("cancel", number))

    def _send(self, message: tuple[Any, ...]) -> None:
        """Send a message, with all others of this turn of the event loop."""
        if not self._outbox:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outbox.append(message)

    def _flush(self) -> None:
        messages, self._outbox = self._outbox, []
        if self.channel is not None:
            self.channel.send(messages)

    async def _follow(self, channel: Channel) -> None:
        """Take in answers; start the process again whenever it dies, until nobody wants it."""
        try:
            while True:
                while (content := await channel.receive()) is not None:
                    self._starts_without_answer = 0
                    self._settle(*content)
                channel = await self._connect()
                self._send_again()
        except PolicyError as error:
            self._fail(error)

    def _fail_with(self, following: asyncio.Task[None]) -> None:
        """Let nobody wait for a way to the process that broke by an error which nobody expected."""
        if not following.cancelled() and (error := following.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """End every request with why it cannot be answered, and those to come."""
        self._failure = str(error) or type(error).__name__
        for _, _, future in self._open.values():
            if not future.done():
                future.set_exception(PolicyError(self._failure))

    def _settle(self, answers: list[tuple[int, str, tuple[Any, ...]]], hedged: int) -> None:
        self.hedged += hedged
        for number, kind, values in answers:
            entry = self._open.pop(number, None)
            if entry is None or entry[2].done():
                continue
            if kind == "completion":
                text, finish, tokens, token_ids, logprobs = values
                entry[2].set_result(Completion(text, finish, tokens, token_ids=token_ids, logprobs=logprobs))
            else:
                entry[2].set_exception(RequestRefused(*values) if kind == "refused" else PolicyError(*values))

    def _send_again(self) -> None:
        self._outbox.clear()
        for number, (problem, index, _) in self._open.items():
            self._outbox.append(("ask", number, problem, index))
        self._flush()

    async def _connect(self) -> Channel:
        """Start a process and return the way to it, once it is ready."""
        while self._starts_without_answer < MOST_STARTS:
            self._starts_without_answer += 1
            self._end()
            if (channel := await self._open_channel(self._opening)) is not None:
                self.channel = channel
                return channel
        raise PolicyError(
            f"a process that asks the servers died {MOST_STARTS} times without an answer; look at what it printed "
            "above, or set sampling.samplers to 1."
        )

    def _end(self) -> None:
        channel, self.channel = self.channel, None
        if channel is not None:
            channel.close()
