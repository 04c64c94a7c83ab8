"""What runs in an asking process: ``python -m curation.policies.asking_process DESCRIPTOR``.

It reads requests from a socket that it inherits, asks the servers, and writes answers back as they come; it ends when
the socket does, which is when its parent ends. `curation.policies.channels` is the other side.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Iterable
from typing import Any

from curation.policies.channels import frame, read_frame
from curation.policies.endpoint import Endpoint
from curation.records import PolicyError, PromptRequest, RequestRefused


class AnsweringLoop:
    """Requests of one parent, under way; ``tell`` gets answers, all of one turn of the event loop together."""

    def __init__(self, policy: Endpoint, tell: Callable[[Any], None]) -> None:
        self._policy, self._write = policy, tell
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._answers: list[tuple[int, str, tuple[Any, ...]]] = []
        self._told_hedged = 0

    def take(self, messages: Iterable[tuple[Any, ...]]) -> None:
        """Begin what is asked, and end what is not wanted any more."""
        for kind, number, *request in messages:
            if kind == "ask":
                self._tasks[number] = asyncio.create_task(self._answer(number, *request))
            elif number in self._tasks:
                self._tasks[number].cancel()

    async def end(self) -> None:
        """Cancel what is under way."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _answer(self, number: int, problem: PromptRequest, index: int) -> None:
        try:
            one = await self._policy.answer(problem, index)
            self._tell(number, "completion", (one.text, one.finish, one.tokens, one.token_ids, one.logprobs))
        except RequestRefused as refused:
            self._tell(number, "refused", (refused.kind, refused.reason))
        except PolicyError as error:
            self._tell(number, "failed", (str(error),))
        finally:
            del self._tasks[number]

    def _tell(self, number: int, kind: str, values: tuple[Any, ...]) -> None:
        """Tell an answer, with all others of this turn of the event loop."""
        if not self._answers:
            asyncio.get_running_loop().call_soon(self._flush)
        self._answers.append((number, kind, values))

    def _flush(self) -> None:
        answers, self._answers = self._answers, []
        hedged, self._told_hedged = self._policy.hedged - self._told_hedged, self._policy.hedged
        self._write((answers, hedged))


async def main(descriptor: int) -> None:
    """Open the policy that the parent sends, say whether that went well, and answer."""
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=descriptor), limit=2**30)
    opening = await read_frame(reader)
    if opening is None:
        return
    policy = Endpoint(*opening)
    try:
        await policy.__aenter__()
    except PolicyError as error:
        writer.write(frame(("failed", str(error))))
        await writer.drain()
        return
    writer.write(frame(("ready", "")))
    try:
        answering = AnsweringLoop(policy, lambda content: writer.write(frame(content)))
        while (messages := await read_frame(reader)) is not None:
            answering.take(messages)
        await answering.end()
    finally:
        await policy.__aexit__(None, None, None)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
