"""Generate on vLLM servers, and update their weights while requests run.

Invariants:

- tokens of other weights than this run's are requested again;
- a server gets no request before it has the newest weights;
- a failed request goes to another server with the same seed.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from curation.config import ServerSettings
from curation.policies.client import ServerClient, ServerResponse, message
from curation.policies.completions import FINISHED, TokenCompletion
from curation.policies.servers import Server, TemporaryFailure
from curation.records import PolicyError
from training.generation.checkpoint_tensors import WeightVersion
from training.generation.decoding_meter import RequestMeter
from training.generation.weight_broadcast import WeightBroadcast

_MIXED = "mixed"
"""Label of tokens that are made during a failed exchange."""

UPDATE_S = 600.0
"""Max seconds for a call of a weight update."""

_START_HINT = "start it with `python -m training.generation.serving`"


class TrainingVllmClient(ServerClient):
    """All servers of a generator, in one event loop.

    Args:
        folder, version: the servers' first weights.
        broadcast: sends tensors to servers that can join it.

    Raises:
        PolicyError: the key is missing; on entering: no server answers, or one was not started as needed.
    """

    def __init__(
        self,
        settings: ServerSettings,
        folder: Path | WeightVersion,
        version: int = 0,
        meter: RequestMeter | None = None,
        broadcast: WeightBroadcast | None = None,
    ) -> None:
        urls = [url.rstrip("/").removesuffix("/v1") for url in settings.urls]
        super().__init__(settings, None, welcome=self._welcome, urls=urls, models="/v1/models")
        self.settings = settings
        self._meter, self._broadcast = meter or RequestMeter(1), broadcast
        self._run = secrets.token_hex(4)
        self._newest = (version, folder)
        self._locks = {server.url: asyncio.Lock() for server in self.servers.all}
        self._exchanges: set[asyncio.Task[None]] = set()

    async def generate(self, prompt_ids: Sequence[int], sampling: Mapping[str, Any]) -> TokenCompletion:
        """Generate one response, without its text, on the least busy server; cancelling aborts it.

        Raises:
            PolicyError: a server refuses it, it failed too often, or no server is alive.
        """
        prompt = tuple(prompt_ids)

        def body() -> dict[str, Any]:
            return {
                "token_ids": prompt,
                "sampling_params": {**sampling, "logprobs": 0, "detokenize": False},
                "cache_salt": self._label(self._newest[0]),  # a prompt's cached keys are shared by one version only
            }

        def read(server: Server, response: ServerResponse) -> TokenCompletion:
            return self._read(server, response, prompt)

        self._meter.begin()
        try:
            return await self.ask("/inference/v1/generate", body, read, "a request")
        finally:
            self._meter.end()

    async def update(self, folder: Path | WeightVersion, version: int) -> None:
        """Give living servers these weights, and others on return; until then they get no request."""
        self._newest = (version, folder)
        await asyncio.gather(*(self._renew(server) for server in self.servers.all if server.alive))

    async def close(self) -> None:
        """Finish begun exchanges, and close all connections."""
        await self.servers.close()
        await asyncio.gather(*self._exchanges, return_exceptions=True)
        await super().close()

    async def _renew(self, server: Server) -> None:
        try:
            await self._bring_up_to_date(server.url)
        except (TemporaryFailure, PolicyError) as failure:  # also: restarted with other options
            self.servers.suspect(server, str(failure))

    async def _welcome(self, url: str, context: int | None) -> None:  # noqa: ARG002 - prompts are measured later
        if self._broadcast is not None:
            self._broadcast.leave(url)
        await self._bring_up_to_date(url)

    def _read(self, server: Server, response: ServerResponse, prompt: tuple[int, ...]) -> TokenCompletion:
        if response.status != 200:
            if response.status in (401, 403, 404):
                raise PolicyError(f"{server.url}: {response.status} {message(response)}; {_START_HINT}.")
            self.require_ok(response, server.url)
        try:
            answer = read_answer(response.content)
        except ValueError as error:
            raise TemporaryFailure(f"200, but no tokens: {response.text!r:.120}") from error
        tokens, finish = answer.token_ids or (), str(answer.finish_reason)
        logprobs = tuple([token.logprob for token in (answer.logprobs and answer.logprobs.content) or ()])
        spans = [(span.version, span.end - span.start) for span in answer.weight_versions]
        versioned = sum(count for _, count in spans)
        if finish not in FINISHED or not len(tokens) == len(logprobs) == versioned:
            raise TemporaryFailure(f"the generation ended as {finish!r}")
        foreign = [label for label, _ in spans if label.partition("-")[0] != self._run or label.endswith(_MIXED)]
        if foreign:
            self.servers.suspect(server, f"it answered with weights {foreign[0]!r}, which are none of this run's")
            raise TemporaryFailure(server.trouble)
        versions: tuple[int, ...] = ()
        for label, count in spans:
            versions += (int(label.partition("-")[2]),) * count
        return TokenCompletion(prompt, tokens, logprobs, versions, "", finish)

    async def _bring_up_to_date(self, url: str) -> None:
        while True:
            newest = self._newest
            exchange = asyncio.create_task(self._exchange(url, *newest))
            self._exchanges.add(exchange)
            exchange.add_done_callback(self._exchanges.discard)
            await asyncio.shield(exchange)
            if newest is self._newest:
                return

    async def _exchange(self, url: str, version: int, weights: Path | WeightVersion) -> None:
        label = self._label(version)
        async with self._locks[url]:
            current = await self.get(f"{url}/weight_info")
            _require_weight_updates(current, url)
            if current.status == 200 and current.json().get("weight_version") == label:
                return
            carry = await self._way_to(url, weights)
            await self._command(url, "pause?mode=keep&clear_cache=false", {})
            share = 1 / len(self.servers.all)
            self._meter.hold(share)
            try:
                await self._command(url, "update_weight_version", {"new_version": self._label(_MIXED)})
                await self._command(url, "start_weight_update", {})
                await carry()
                await self._command(url, "finish_weight_update", {"weight_version": label})
            except TemporaryFailure:
                with suppress(TemporaryFailure):  # the first failure is the one reported
                    await self._command(url, "resume", {})
                raise
            else:
                await self._command(url, "resume", {})
            finally:
                self._meter.release(share)

    async def _way_to(self, url: str, weights: Path | WeightVersion) -> Callable[[], Awaitable[None]]:

        async def command(path: str, body: Mapping[str, Any]) -> None:
            await self._command(url, path, body)

        async def workers() -> int:
            response = await self.get(f"{url}/get_world_size")
            try:
                return int(response.json()["world_size"])
            except (ValueError, LookupError, TypeError) as error:
                raise TemporaryFailure(f"/get_world_size: {response.status} {message(response)}") from error

        broadcast = self._broadcast
        if broadcast is not None and isinstance(weights, WeightVersion) and await broadcast.join(url, workers, command):
            return lambda: broadcast.send(url, weights, command)
        folder = weights if isinstance(weights, Path) else await asyncio.to_thread(weights.folder)
        return lambda: command("update_weights", {"update_info": {"folder": str(folder)}})

    async def _command(self, url: str, path: str, body: Mapping[str, Any]) -> None:
        response = await self.post(f"{url}/{path}", body, UPDATE_S)
        _require_weight_updates(response, url)
        if response.status != 200:
            raise TemporaryFailure(f"/{path.partition('?')[0]}: {response.status} {message(response)}")

    def _label(self, version: int | str) -> str:
        return f"{self._run}-{version}"


def _require_weight_updates(response: ServerResponse, url: str) -> None:
    if response.status in (401, 403):
        raise PolicyError(f"{url}: refuses a weight update ({response.status} {message(response)}); {_START_HINT}.")
    if response.status == 404:
        raise PolicyError(f"{url}: knows no weight updates (404); {_START_HINT}, or set VLLM_SERVER_DEV_MODE=1.")


class _Token(msgspec.Struct, gc=False):
    logprob: float


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _Span(msgspec.Struct):
    version: str
    start: int
    end: int


class Answer(msgspec.Struct):
    """A server's response, read with few Python objects."""

    finish_reason: str | None
    weight_versions: list[_Span]
    token_ids: tuple[int, ...] | None = None
    logprobs: _Logprobs | None = None


class _Body(msgspec.Struct):
    choices: list[Answer]


_DECODER = msgspec.json.Decoder(_Body)


def read_answer(content: bytes) -> Answer:
    """Return the first response of a body.

    Raises:
        ValueError: it holds none.
    """
    try:
        choices = _DECODER.decode(content).choices
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
    if not choices:
        raise ValueError("no choice")
    return choices[0]
