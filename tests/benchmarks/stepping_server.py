"""A server whose tokens take time and no CPU, as on a GPU elsewhere: all that this machine does is ask it.

    python -m tests.benchmarks.stepping_server PORT SEATS STEP_MS SEAT_MS PREFILL_MS MEAN

It decodes as vLLM does: a step makes a token for each request that has a seat, and takes `STEP_MS` and `SEAT_MS` for
each of them; a request that joins costs the step `PREFILL_MS` where the server has not had its prompt before; what
finds no seat waits in its order. Answers have 16 to 4 x MEAN tokens, exponentially many, by the prompt and the seed
alone, so the same work is asked of any number of servers. ``/counts`` tells what it has done.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import random
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.benchmarks.http_answers import Answering

SHORTEST = 16


@dataclass
class Counts:
    """What a server has done: requests, those whose prompt it had had, tokens, steps and the seats taken in them."""

    requests: int = 0
    cached: int = 0
    tokens: int = 0
    steps: int = 0
    seats: int = 0
    most: int = 0


@dataclass
class Decoding:
    """The engine: requests by the step at which they end."""

    seats: int
    step_s: float
    seat_s: float
    prefill_s: float
    counts: Counts = field(default_factory=Counts)
    waiting: deque[tuple[bytes, int, Callable[[int], None]]] = field(default_factory=deque)
    known: set[bytes] = field(default_factory=set)
    _ends: list[tuple[int, int, int, Callable[[int], None]]] = field(default_factory=list)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, prompt: bytes, tokens: int, answer: Callable[[int], None]) -> None:
        """Have a request decoded, and `answer` called when it has its tokens."""
        self.counts.requests += 1
        self.waiting.append((prompt, tokens, answer))
        self._wake.set()

    async def run(self) -> None:
        """Decode for ever; a step that begins late ends when it would have ended."""
        now = time.monotonic()
        while True:
            if not self._ends and not self.waiting:
                self._wake.clear()
                await self._wake.wait()
                now = time.monotonic()
            now += self._join() + self.step_s + self.seat_s * len(self._ends)
            await asyncio.sleep(now - time.monotonic())
            counts = self.counts
            counts.steps, counts.seats = counts.steps + 1, counts.seats + len(self._ends)
            counts.most = max(counts.most, len(self._ends))
            while self._ends and self._ends[0][0] <= counts.steps:
                _, _, tokens, answer = heapq.heappop(self._ends)
                counts.tokens += tokens
                answer(tokens)

    def _join(self) -> float:
        """Give free seats to what waits, and return the seconds that its prompts take."""
        took = 0.0
        while self.waiting and len(self._ends) < self.seats:
            prompt, tokens, answer = self.waiting.popleft()
            if prompt in self.known:
                self.counts.cached += 1
            else:
                self.known.add(prompt)
                took += self.prefill_s
            heapq.heappush(self._ends, (self.counts.steps + tokens, id(answer), tokens, answer))
        return took


def length_of(prompt: bytes, seed: int, mean: int) -> int:
    """Return how many tokens the answer to a request has."""
    drawn = random.Random(prompt + str(seed).encode()).expovariate(1 / mean)
    return max(SHORTEST, min(4 * mean, round(drawn)))


async def serve(port: int, decoding: Decoding, mean: int) -> None:
    """Answer requests until killed."""

    def answer(head: bytes, body: bytes, send: Callable[[bytes], None]) -> None:
        def write(content: dict[str, Any]) -> None:
            send(json.dumps(content).encode())

        def complete(tokens: int) -> None:
            choice = {"index": 0, "finish_reason": "stop", "text": "", "token_ids": [7] * tokens}
            write({"choices": [choice], "usage": {"completion_tokens": tokens}})

        if not head.startswith(b"POST"):
            write(vars(decoding.counts) if b"/counts" in head.split(b"\r\n", 1)[0] else {"data": [{"id": "m"}]})
            return
        asked = json.loads(body)
        prompt = json.dumps(asked["prompt"]).encode()
        decoding.add(prompt, length_of(prompt, asked["seed"], mean), complete)

    server = await asyncio.get_running_loop().create_server(partial(Answering, answer), "127.0.0.1", port, backlog=1024)
    async with server:
        await decoding.run()


if __name__ == "__main__":
    step_s, seat_s, prefill_s = (float(word) / 1000 for word in sys.argv[3:6])
    asyncio.run(serve(int(sys.argv[1]), Decoding(int(sys.argv[2]), step_s, seat_s, prefill_s), int(sys.argv[6])))
