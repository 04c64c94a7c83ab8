"""Are eight copies of a model eight times one, as vLLM's own data parallelism gives them requests?

    .venv/bin/python -m tests.benchmarks.bench_routing [--counts 1 2 4 8] [--problems 48] [--in-flight 64] [--stopping]

No GPU is needed: each copy is a stand-in whose tokens take time and no CPU, and vLLM's own code chooses the copy of a
request (`DPLBAsyncMPClient.get_core_engine_for_request`), by its own counts and by what its coordinator reports every
100 ms. The sampler asks for 16 attempts at `--problems` problems for each copy, or with ``--stopping`` for as many as
the default rule needs, has them judged and stores them. A step of a copy takes longer the more it decodes, and a prompt
that it has not had costs a prefill: vLLM spreads the attempts at one problem over all copies.

Printed per count: tokens a second and times one, of the whole run and until its last problem was begun, after which
copies run dry, as in every run; the mean share of in_flight that a copy decoded at; requests at the copy with fewest
and with most; requests that found their prompt's cache; CPU seconds of this process, for 1,000 requests and as a share
of a core. Needs vLLM.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import itertools
import random
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, Self

from vllm.v1.engine.core_client import DPLBAsyncMPClient

from curation.config import Band
from curation.difficulty.early_stopping import StoppingRule
from curation.difficulty.sampling import Sampler, SamplingRequest
from curation.records import AttemptKey, Completion, Domain, PromptRequest
from curation.storage.attempts import AttemptStore
from curation.verify.math_judge import MathJudge
from tests.curation.drawn import drawn_answer

ATTEMPTS, SHORTEST, COORDINATOR_S = 16, 16, 0.1


@dataclass(eq=False)
class Copy:
    """One copy: requests by the step at which they end, and what it has done."""

    in_flight: int
    step_s: float
    seat_s: float
    prefill_s: float
    requests: int = 0
    cached: int = 0
    tokens: int = 0
    steps: int = 0
    seats: int = 0
    waiting: deque[tuple[str, int, asyncio.Future[int]]] = field(default_factory=deque)
    decoding: list[tuple[int, int, int, asyncio.Future[int]]] = field(default_factory=list)
    _known: set[str] = field(default_factory=set)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    async def generate(self, prompt: str, tokens: int) -> int:
        """Return the number of tokens, once they are made."""
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.requests += 1
        self.waiting.append((prompt, tokens, done))
        self._wake.set()
        return await done

    async def run(self) -> None:
        """Decode for ever; a step that begins late ends when it would have ended."""
        now = time.monotonic()
        while True:
            if not self.decoding and not self.waiting:
                self._wake.clear()
                await self._wake.wait()
                now = time.monotonic()
            now += self._join() + self.step_s + self.seat_s * len(self.decoding)
            await asyncio.sleep(now - time.monotonic())
            self.steps, self.seats = self.steps + 1, self.seats + len(self.decoding)
            while self.decoding and self.decoding[0][0] <= self.steps:
                _, _, tokens, done = heapq.heappop(self.decoding)
                self.tokens += tokens
                if not done.done():
                    done.set_result(tokens)

    def _join(self) -> float:
        """Give free seats to what waits, and return the seconds that its prompts take."""
        took = 0.0
        while self.waiting and len(self.decoding) < self.in_flight:
            prompt, tokens, done = self.waiting.popleft()
            self.cached += prompt in self._known
            took += self.prefill_s * (prompt not in self._known)
            self._known.add(prompt)
            heapq.heappush(self.decoding, (self.steps + tokens, id(done), tokens, done))
        return took


class Copies:
    """The copies as a policy; what they say is drawn here, by problem and index."""

    key = AttemptKey("copies@1", "p", "s")
    about: Mapping[str, Any] = {}

    def __init__(self, count: int, chosen: argparse.Namespace) -> None:
        self.in_flight, self._mean = count * chosen.in_flight, chosen.mean
        times = (chosen.step_ms / 1000, chosen.seat_ms / 1000, chosen.prefill_ms / 1000)
        self.copies = [Copy(chosen.in_flight, *times) for _ in range(count)]
        self._numbers = itertools.count()
        self._router: Any = SimpleNamespace(
            client_count=1,
            core_engines=list(range(count)),
            eng_start_index=0,
            engine_inflight=Counter(),
            lb_engines=[[0, 0, 0.0] for _ in range(count)],
            reqs_in_flight={},
        )

    async def __aenter__(self) -> Self:
        self._tasks = [
            asyncio.ensure_future(work) for work in (self._coordinate(), *(copy.run() for copy in self.copies))
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        """Return one attempt."""
        request = str(next(self._numbers))
        asked = SimpleNamespace(request_id=request, data_parallel_rank=None, pooling_params=None)
        chosen = DPLBAsyncMPClient.get_core_engine_for_request(self._router, asked)
        drawn = random.Random(f"{problem.id} {index}").expovariate(1 / self._mean)
        try:
            tokens = await self.copies[chosen].generate(problem.id, max(SHORTEST, min(4 * self._mean, round(drawn))))
        finally:
            self._router.engine_inflight[self._router.reqs_in_flight.pop(request)] -= 1
        number = int(problem.id, 16)
        return Completion(f"\\boxed{{{drawn_answer(f'p{number % 40}', number * ATTEMPTS + index)}}}", "stop", tokens)

    async def _coordinate(self) -> None:
        while True:
            counts = [(len(copy.waiting), len(copy.decoding)) for copy in self.copies]
            self._router.lb_engines = [
                [waiting, running, running / copy.in_flight]
                for (waiting, running), copy in zip(counts, self.copies, strict=True)
            ]
            await asyncio.sleep(COORDINATOR_S)


@dataclass(frozen=True, slots=True)
class Seen:
    """One run: seconds by the clock and of CPU, what was done until the last problem was begun, and the copies."""

    wall: float
    cpu: float
    busy_s: float
    busy_tokens: int
    copies: list[Copy]

    @property
    def speed(self) -> float:
        """Return tokens a second."""
        return sum(one.tokens for one in self.copies) / self.wall

    @property
    def busy_speed(self) -> float:
        """Return tokens a second until the last problem was begun."""
        return self.busy_tokens / self.busy_s


async def measure(count: int, chosen: argparse.Namespace) -> Seen:
    """Return what sampling from so many copies was."""
    rule = StoppingRule(Band(attempts=ATTEMPTS), early_stopping=chosen.stopping)
    with tempfile.TemporaryDirectory() as folder, MathJudge(1) as judge:
        store = AttemptStore(Path(folder), Copies.key)
        async with Copies(count, chosen) as policy:
            began, cpu = time.monotonic(), time.process_time()
            busy: list[tuple[float, int]] = []

            def asked() -> Iterator[SamplingRequest]:
                for number in range(count * chosen.problems):
                    yield SamplingRequest(PromptRequest(f"{number:020x}", "What?", Domain.MATH, "en"), "7")
                if not busy:
                    busy.append((time.monotonic() - began, sum(one.tokens for one in policy.copies)))

            async for _ in Sampler(policy, store, judge, rule).run(asked()):
                pass
            seen = Seen(time.monotonic() - began, time.process_time() - cpu, *busy[0], policy.copies)
        store.close()
    return seen


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--counts", type=int, nargs="+", default=[1, 2, 4, 8])
    options.add_argument("--problems", type=int, default=48, help="for each copy")
    options.add_argument("--in-flight", type=int, default=64, help="requests for each copy")
    options.add_argument("--mean", type=int, default=200, help="tokens of an answer")
    options.add_argument("--step-ms", type=float, default=25.0, help="what a step takes")
    options.add_argument("--seat-ms", type=float, default=0.1, help="… and each request in it")
    options.add_argument("--prefill-ms", type=float, default=10.0, help="… and each prompt that is new to the copy")
    options.add_argument("--stopping", action="store_true", help="stop early")
    chosen = options.parse_args()
    first: Seen | None = None
    print(
        "copies  tokens/s  times one   until the last is begun  in flight  fewest, most requests  cached  "
        "CPU s / 1,000 requests  of a core"
    )
    for count in chosen.counts:
        seen = asyncio.run(measure(count, chosen))
        first = first or seen
        print(line(count, seen, first, chosen), flush=True)


def line(count: int, seen: Seen, first: Seen, chosen: argparse.Namespace) -> str:
    """Return a line of the table; ``first`` is the run with the first number of copies."""
    one, requests = chosen.counts[0], [copy.requests for copy in seen.copies]
    total = sum(requests)
    full = sum(copy.seats for copy in seen.copies) / sum(copy.steps for copy in seen.copies)
    cached = sum(copy.cached for copy in seen.copies) / total
    spread = f"{min(requests)}, {max(requests)}"
    return (
        f"{count:6} {seen.speed:9.0f} {one * seen.speed / first.speed:10.2f} {seen.busy_speed:14.0f} "
        f"{one * seen.busy_speed / first.busy_speed:10.2f} {full / chosen.in_flight:10.0%} {spread:>22}  {cached:6.1%} "
        f"{1000 * seen.cpu / total:23.2f} {seen.cpu / seen.wall:10.2f}"
    )


if __name__ == "__main__":
    main()
