"""Are eight servers eight times one? Servers whose tokens take time but no CPU, asked as `replicas = 8` asks them.

    .venv/bin/python -m tests.benchmarks.bench_routing [--counts 1 2 4 8] [--problems 32] [--in-flight 64] [--stopping]

Each server is a process (`tests.benchmarks.stepping_server`) started, watched and asked by `ReplicatedEngine`, in the
place of vLLM; the sampler asks for 16 attempts at `--problems` problems for each server, or with ``--stopping`` for as
many as the default rule needs, with so many requests in flight for each server as a policy has (`in_flight`), has
them judged and stores them. A step of a server takes longer the more it decodes, and a prompt that it has not had
costs a prefill, so a server with too few requests loses tokens and one with too many loses time. Answers are the same
whichever server gives them.

Printed per count: tokens a second and times one, of the whole run and until its last problem was begun, after which
servers run dry, as in every run; the mean share of in_flight that a server decoded at; requests at the
server with fewest and with most; requests that found their prompt's cache (15 of 16 where all attempts at a problem go
to one server); CPU seconds of the asking process, for 1,000 requests and as a share of a core.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, Self
from unittest.mock import patch
from urllib.request import urlopen

from curation.config import Band, EngineSettings
from curation.difficulty.early_stopping import StoppingRule
from curation.difficulty.open_problems import SamplingRequest
from curation.difficulty.sampling import Sampler
from curation.policies.servers import EVEN
from curation.policies.vllm import replicas
from curation.policies.vllm.replicas import ReplicatedEngine
from curation.policies.vllm.startup import Launch
from curation.records import AttemptKey, Completion, Domain, PromptRequest
from curation.storage.attempts import AttemptStore
from curation.verify.math_judge import MathJudge
from tests.benchmarks.stepping_server import Counts
from tests.curation.drawn import drawn_answer
from tests.waiting import until

ATTEMPTS, PROMPT = 16, 200


class SteppingReplicas:
    """`ReplicatedEngine` over such servers, as a policy: what they say is drawn here, by problem and index."""

    key = AttemptKey("stepping@1", "p", "s")
    about: Mapping[str, Any] = {}

    def __init__(self, count: int, chosen: argparse.Namespace) -> None:
        self.in_flight = count * chosen.in_flight
        launch = Launch("stepping", "stepping", chosen.in_flight)
        self.engine = ReplicatedEngine(launch, EngineSettings(), count, self.command)
        self._chosen = chosen

    def command(self, port: int) -> Sequence[str]:
        """Return a server's command: seats as vLLM gets them from `ReplicatedEngine`."""
        chosen = self._chosen
        figures = (chosen.step_ms, chosen.seat_ms, chosen.prefill_ms, chosen.mean)
        seats = math.ceil(EVEN * chosen.in_flight)
        return [sys.executable, "-m", "tests.benchmarks.stepping_server", str(port), str(seats), *map(str, figures)]

    async def __aenter__(self) -> Self:
        await self.engine.__aenter__()
        assert self.engine.servers is not None
        servers = self.engine.servers.replicas
        await until(lambda: all(server.healthy for server in servers))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.engine.__aexit__(kind, error, trace)

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        """Return one attempt."""
        number = int(problem.id, 16)
        prompt = [number * PROMPT + place for place in range(PROMPT)]
        sampling = self.engine.sampling(temperature=1.0, top_p=1.0, max_tokens=4096, seed=index, logprobs=False)
        done = await self.engine.generate(prompt, sampling, f"{problem.id}-{index}")
        answer = drawn_answer(f"p{number % 40}", number * ATTEMPTS + index)
        return Completion(f"\\boxed{{{answer}}}", done.finish, len(done.token_ids))

    def counts(self) -> list[Counts]:
        """Return what each server has done."""
        told = []
        for server in self.engine.client.servers.all:
            with urlopen(f"{server.url}/counts") as answer:
                told.append(Counts(**json.loads(answer.read())))
        return told


@dataclass(frozen=True, slots=True)
class Seen:
    """One run: seconds by the clock, CPU seconds of the asking process, what was done until the last problem was begun,
    and what each server did.
    """

    wall: float
    cpu: float
    busy_s: float
    busy_tokens: int
    servers: list[Counts]

    @property
    def speed(self) -> float:
        """Return tokens a second."""
        return sum(one.tokens for one in self.servers) / self.wall

    @property
    def busy_speed(self) -> float:
        """Return tokens a second until the last problem was begun."""
        return self.busy_tokens / self.busy_s


async def measure(count: int, chosen: argparse.Namespace) -> Seen:
    """Return what sampling from so many servers was."""
    rule = StoppingRule(Band(attempts=ATTEMPTS), early_stopping=chosen.stopping)
    with tempfile.TemporaryDirectory() as folder, MathJudge(1) as judge:
        store = AttemptStore(Path(folder), SteppingReplicas.key)
        async with SteppingReplicas(count, chosen) as policy:
            began, cpu = time.monotonic(), time.process_time()
            busy: list[tuple[float, int]] = []

            def asked() -> Iterator[SamplingRequest]:
                for number in range(count * chosen.problems):
                    yield SamplingRequest(PromptRequest(f"{number:020x}", "What?", Domain.MATH, "en"), "7")
                if not busy:
                    busy.append((time.monotonic() - began, sum(one.tokens for one in policy.counts())))

            async for _ in Sampler(policy, store, judge, rule, ahead=chosen.stopping).run(asked()):
                pass
            seen = Seen(time.monotonic() - began, time.process_time() - cpu, *busy[0], policy.counts())
        store.close()
    return seen


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--counts", type=int, nargs="+", default=[1, 2, 4, 8])
    options.add_argument("--problems", type=int, default=32, help="for each server")
    options.add_argument("--in-flight", type=int, default=64, help="requests for each server")
    options.add_argument("--mean", type=int, default=200, help="tokens of an answer")
    options.add_argument("--step-ms", type=float, default=25.0, help="what a step takes")
    options.add_argument("--seat-ms", type=float, default=0.1, help="… and each request in it")
    options.add_argument("--prefill-ms", type=float, default=10.0, help="… and each prompt that is new to the server")
    options.add_argument("--stopping", action="store_true", help="stop early")
    chosen = options.parse_args()
    config = SimpleNamespace(max_model_len=4096 + PROMPT, try_get_generation_config=dict)
    first: Seen | None = None
    print(
        "servers  tokens/s  times one   until the last is begun  in flight  fewest, most requests  cached  "
        "CPU s / 1,000 requests  of a core"
    )
    with patch.object(replicas, "load_model_config", lambda *_: (config, None)):
        for count in chosen.counts:
            seen = asyncio.run(measure(count, chosen))
            first = first or seen
            print(line(count, seen, first, chosen), flush=True)


def line(count: int, seen: Seen, first: Seen, chosen: argparse.Namespace) -> str:
    """Return a line of the table; ``first`` is the run with the first number of servers."""
    one, requests = chosen.counts[0], [server.requests for server in seen.servers]
    total = sum(requests)
    full = sum(server.seats for server in seen.servers) / sum(server.steps for server in seen.servers)
    cached = sum(server.cached for server in seen.servers) / total
    spread = f"{min(requests)}, {max(requests)}"
    return (
        f"{count:7} {seen.speed:9.0f} {one * seen.speed / first.speed:10.2f} {seen.busy_speed:14.0f} "
        f"{one * seen.busy_speed / first.busy_speed:10.2f} {full / chosen.in_flight:10.0%} {spread:>22}  {cached:6.1%} "
        f"{1000 * seen.cpu / total:23.2f} {seen.cpu / seen.wall:10.2f}"
    )


if __name__ == "__main__":
    main()
