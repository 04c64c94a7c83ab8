"""Attempts a second from servers to the store: sampler, judge and store in one process, asking in several.

    python -m tests.benchmarks.bench_samplers [--problems 600] [--samplers 1 2] [--samples 1 16] [--servers 2]

The servers are processes that answer at once with 200 words and a box. 16 attempts a problem, no early stopping, every
attempt journalled, judged and made a part. Wall times lie on a busy machine: CPU seconds per attempt say what the
sampling process takes, what the asking processes take, and what the fake servers do; so many attempts a second are
possible where each process has a core of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

import psutil

from curation.config import Band, Decoding, EndpointPolicy
from curation.difficulty.early_stopping import StoppingRule
from curation.difficulty.open_problems import SamplingRequest
from curation.difficulty.sampling import Sampler
from curation.policies.endpoint import Endpoint
from curation.policies.processes import AskingProcesses
from curation.records import Domain, PromptRequest
from curation.storage.attempts import AttemptStore
from curation.verify.math_judge import MathJudge
from tests.benchmarks.instant_server import answer_at_once

ATTEMPTS = 16
MODELS = b'{"data": [{"id": "m", "max_model_len": 32768}]}'


def _answers(samples: int, with_tokens: bool) -> bytes:
    text = "thinking " * 200 + "\\boxed{7}"
    tokens = {"token_ids": list(range(210))} if with_tokens else {}
    choices = [
        {"index": index, "finish_reason": "stop", "message": {"role": "assistant", "content": text}, **tokens}
        for index in range(samples)
    ]
    return json.dumps({"choices": choices, "usage": {"prompt_tokens": 40, "completion_tokens": 210 * samples}}).encode()


def serve(port: Connection) -> None:
    """Answer whatever comes, until killed; ``port`` receives the port."""
    known: dict[tuple[int, bool], bytes] = {}

    def content_for(head: bytes, body: bytes) -> bytes:
        if head.startswith(b"GET"):
            return MODELS
        asked = json.loads(body)
        key = int(asked.get("n", 1)), bool(asked.get("return_token_ids"))
        return known.setdefault(key, b"") or known.update({key: _answers(*key)}) or known[key]

    answer_at_once(content_for, port)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


async def measure(settings: EndpointPolicy, samplers: int, problems: int, servers: list[psutil.Process]) -> str:
    """Sample all problems once, and return what it took, as a line."""
    requests = [
        SamplingRequest(PromptRequest(f"{number:020x}", "What is 2 + 2?", Domain.MATH, "en"), "7")
        for number in range(problems)
    ]
    policy = Endpoint(settings, Path()) if samplers == 1 else AskingProcesses(settings, Path(), None, samplers)
    with tempfile.TemporaryDirectory() as folder, MathJudge(1) as judge:
        async with policy:
            asking = [
                psutil.Process(one.channel.process.pid) for one in getattr(policy, "processes", ()) if one.channel
            ]
            before = [sum(map(_cpu, group)) for group in (asking, servers)]
            store = AttemptStore(Path(folder), policy.key)
            begun, own = time.perf_counter(), time.process_time()
            sampler = Sampler(policy, store, judge, StoppingRule(Band(attempts=ATTEMPTS), early_stopping=False))
            names = [sampled.problem async for sampled in sampler.run(requests)]
            store.compact(names)
            own, wall = time.process_time() - own, time.perf_counter() - begun
            spent = [sum(map(_cpu, group)) - start for group, start in zip((asking, servers), before, strict=True)]
            assert store.height == problems * ATTEMPTS
            store.close()
    attempts = problems * ATTEMPTS
    each = [1000 * seconds / attempts for seconds in (own, *spent)]
    busiest = max(each[0], each[1] / max(samplers, 1))
    return (
        f"{samplers} processes, {settings.samples_per_request:2} samples a request: {attempts / wall:,.0f} attempts/s; "
        f"CPU ms per attempt: sampler {each[0]:.3f}, asking {each[1]:.3f}, fake servers {each[2]:.3f}; "
        f"with a core each {1000 / busiest:,.0f} attempts/s"
    )


def main() -> None:
    """Print a line for each number of processes and of samples."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=600)
    parser.add_argument("--samplers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--samples", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--servers", type=int, default=2)
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    started = []
    try:
        for _ in range(arguments.servers):
            here, there = context.Pipe()
            server = context.Process(target=serve, args=(there,), daemon=True)
            server.start()
            started.append((server, f"http://127.0.0.1:{here.recv()}/v1"))
        servers = [psutil.Process(server.pid) for server, _ in started]
        for samples in arguments.samples:
            for samplers in arguments.samplers:
                settings = EndpointPolicy(
                    kind="endpoint",
                    model="m",
                    revision="1",
                    urls=tuple(url for _, url in started),
                    decoding=Decoding(seed=3, max_tokens=4096),
                    samples_per_request=samples,
                )
                print(asyncio.run(measure(settings, samplers, arguments.problems, servers)), flush=True)
    finally:
        for server, _ in started:
            server.kill()


if __name__ == "__main__":
    main()
