"""What asking servers costs the client: CPU per attempt, for measuring (chat) and for training (tokens).

    python -m tests.benchmarks.bench_client [--requests 2000] [--rounds 3] [--in-flight 64]

The server, another process, answers at once: 200 words, or 64 tokens with log-probabilities. CPU seconds are the
client's alone. `aiohttp` is the same chat request sent and parsed without our code.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import statistics
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

import aiohttp
import orjson

from curation.config import Decoding, EndpointModel
from curation.policies.endpoint import Endpoint
from curation.records import Domain, PromptRequest
from training.embedded_model import WEIGHTS
from training.generation.endpoint_generators import EndpointGenerator

TOKENS = 64
LENGTH = b"content-length:"
CHAT = {
    "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "thinking " * 200}}],
    "usage": {"prompt_tokens": 40, "completion_tokens": 210},
}
MESSAGES = [{"role": "user", "content": "What is 2 + 2?"}]
MODELS = {"data": [{"id": "m", "max_model_len": 32768}]}


def _answer(path: str, body: bytes, state: dict[str, str]) -> object:
    if path.endswith("/models"):
        return MODELS
    if path.endswith("/chat/completions"):
        return CHAT
    if path.endswith("/inference/v1/generate"):
        choice: dict[str, object] = {"token_ids": list(range(TOKENS)), "finish_reason": "stop"}
        choice["weight_versions"] = [{"version": state["version"], "start": 0, "end": TOKENS}]
        choice["logprobs"] = {"content": [{"token_id": token, "logprob": -0.5} for token in range(TOKENS)]}
        return {"choices": [choice]}
    if path.endswith("/finish_weight_update"):
        state["version"] = json.loads(body)["weight_version"]
    return {"weight_version": state["version"]}


def serve(port: Connection) -> None:
    """Answer whatever comes, until killed; ``port`` receives the port."""
    state = {"version": "default"}

    class Answering(asyncio.Protocol):
        """One connection; requests come one after another, each perhaps in pieces."""

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self._to, self._read = cast(asyncio.WriteTransport, transport), b""

        def data_received(self, data: bytes) -> None:
            self._read += data
            head, end, body = self._read.partition(b"\r\n\r\n")
            lengths = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(LENGTH)]
            if not end or len(body) < (lengths or [0])[0]:
                return
            self._read = b""
            content = json.dumps(_answer(head.split()[1].decode().partition("?")[0], body, state)).encode()
            self._to.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content))

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0, backlog=1024)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


async def measure(ask: Callable[[int], Awaitable[object]], requests: int, in_flight: int) -> float:
    """Return CPU milliseconds of this process per request."""
    numbers = iter(range(requests))

    async def work() -> None:
        for number in numbers:
            await ask(number)

    begun = time.process_time()
    await asyncio.gather(*(work() for _ in range(in_flight)))
    return (time.process_time() - begun) / requests * 1000


async def compare(url: str, requests: int, rounds: int, in_flight: int) -> dict[str, list[float]]:
    own = EndpointModel(kind="endpoint", model="m", revision="1", urls=(url,), in_flight=in_flight)
    policy = own.model_copy(update={"urls": (f"{url}/v1",), "decoding": Decoding(max_tokens=4096)})
    prompt = tuple(range(200))
    async with (
        Endpoint(policy, Path()) as endpoint,
        EndpointGenerator(WEIGHTS, own) as generator,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):

        async def bare(number: int) -> object:
            body = {"model": "m", "max_tokens": 4096, "seed": number, "messages": MESSAGES}
            async with session.post(f"{url}/v1/chat/completions", data=orjson.dumps(body)) as response:
                return orjson.loads(await response.read())

        async def chat(number: int) -> object:
            return await endpoint.answer(PromptRequest(f"{number:020x}", "What is 2 + 2?", Domain.MATH, "en"), 0)

        async def tokens(number: int) -> object:
            return await generator.generate(prompt, seed=number, max_tokens=TOKENS)

        kinds = {"aiohttp": bare, "chat": chat, "tokens": tokens}
        for ask in kinds.values():
            await measure(ask, 200, in_flight)  # imports, connections
        spent = [[await measure(ask, requests, in_flight) for ask in kinds.values()] for _ in range(rounds)]
    return dict(zip(kinds, map(list, zip(*spent, strict=True)), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, default in (("--requests", 2000), ("--rounds", 3), ("--in-flight", 64)):
        parser.add_argument(option, type=int, default=default)
    arguments = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    server = spawn.Process(target=serve, args=(there,), daemon=True)
    server.start()
    try:
        url = f"http://127.0.0.1:{here.recv()}"
        spent = asyncio.run(compare(url, arguments.requests, arguments.rounds, arguments.in_flight))
    finally:
        server.kill()
    for kind, times in spent.items():
        rounds = ", ".join(f"{milliseconds:.2f}" for milliseconds in times)
        print(f"{kind}: {statistics.median(times):.2f} ms CPU per attempt (rounds: {rounds})")


if __name__ == "__main__":
    main()
