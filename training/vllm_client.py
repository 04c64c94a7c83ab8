"""vLLM's servers as the trainer asks them: tokens in, tokens with versions out, and new weights while requests run.

Two of vLLM's own interfaces, by HTTP: tokens in and out (``/inference/v1/generate``, which names the version of the
weights for every token), and the weight update of its development mode (pause, start, update, finish, resume). A server
is started as `curation.policies.vllm.serving` starts it, on any machine that sees the folder of the weights.

Invariants:
  - a token's version is what the server says made it, under a label that only this run gives: an answer with tokens of
    other weights (a server started anew, an update that failed half-way, another run's) is thrown away and asked again;
  - a server gets no request before it has the newest weights, when it is met first and whenever it has been away;
  - a request that a server could not answer goes to another one, with the same seed; an update keeps those in flight;
  - a server that fails at an update is left alone until it has taken the newest weights; the others go on.

Not here: writing the folder, texts (`training.endpoint_generators`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from curation.policies.client import (
    AGAIN,
    Again,
    authorisation,
    context_of,
    message,
    open_client,
    pause_after,
    raise_if_busy,
)
from curation.policies.servers import Server, Servers
from curation.records import PolicyError
from training.vllm_settings import EndpointGenerator as EndpointSettings

if TYPE_CHECKING:
    import httpx

_MIXED = "mixed"
"""Label of tokens that are made while weights are exchanged: there are none, unless the exchange fails."""

_HOW = "start it with `python -m curation.policies.vllm.serving`"


@dataclass(frozen=True, slots=True)
class Served:
    """One response. ``logprobs`` and ``versions`` have one entry per token; ``finish`` is ``stop`` or ``length``."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    versions: tuple[int, ...]
    finish: str


class TrainingServers:
    """All servers of a generator. Lives inside its ``async with`` block, in one event loop.

    Args:
        folder, version: the weights that servers get when they are met first.

    Raises:
        PolicyError: the environment lacks the key; on entering: no server answers, or one was not started as needed.
    """

    def __init__(self, settings: EndpointSettings, folder: Path, version: int = 0) -> None:
        self.settings = settings
        self._run = secrets.token_hex(4)
        self._newest = (version, folder)
        self._headers = authorisation(settings.api_key_env, settings.model or "of the servers")
        self.servers = Servers(
            [url.rstrip("/").removesuffix("/v1") for url in settings.urls],
            settings.per_server,
            settings.give_up_s,
            self._greet,
        )
        self._locks = {server.url: asyncio.Lock() for server in self.servers.all}
        self._exchanges: set[asyncio.Task[str | None]] = set()
        self._context: int | None = None
        self._client: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        self._client = open_client(self.settings.request_s, self.settings.connect_s, self._headers)
        entered = False
        try:
            await self.servers.greet()
            entered = True
        finally:
            if not entered:
                await self._close()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    @property
    def context(self) -> int | None:
        """Tokens of prompt and answer together, as far as the servers say."""
        return self._context

    async def generate(self, prompt_ids: Sequence[int], sampling: Mapping[str, Any]) -> Served:
        """One response, of whichever server has the shortest queue. Cancelling the call aborts the request there.

        Raises:
            PolicyError: a server refuses the request, it failed too often, or no server is alive.
        """
        failed = 0
        while True:
            async with self.servers.one() as server:
                try:
                    return await self._ask(server, prompt_ids, sampling)
                except Again as reason:
                    failed += 1
                    said = f"{server.url}: {reason}"
            if failed > self.settings.retries:
                raise PolicyError(f"a request failed {failed} times, last at {said}.")
            await asyncio.sleep(pause_after(failed, self.settings.back_off_s))

    async def update(self, folder: Path, version: int) -> None:
        """Have all living servers take these weights, at once; those that are away get them when they are back.

        One that fails gets no request until it has taken them. Once begun, an exchange goes on to its end even where
        the call is cancelled.
        """
        self._newest = (version, folder)
        await asyncio.gather(*(self._renew(server) for server in self.servers.all if server.alive))

    async def _renew(self, server: Server) -> None:
        try:
            trouble = await self._bring(server.url)
        except PolicyError as error:  # started anew, in another way
            trouble = str(error)
        if trouble is not None:
            self.servers.suspect(server, trouble)

    async def _ask(self, server: Server, prompt_ids: Sequence[int], sampling: Mapping[str, Any]) -> Served:
        body: dict[str, Any] = {
            "token_ids": list(prompt_ids),
            "sampling_params": {**sampling, "logprobs": 0, "detokenize": False},
            "cache_salt": self._label(self._newest[0]),  # a prompt's cached keys are shared by one version only
        }
        if self.settings.model:
            body["model"] = self.settings.model
        response = await self._post(server.url, "inference/v1/generate", body)
        if isinstance(response, str):
            self.servers.suspect(server, response)
            raise Again(response)
        raise_if_busy(server, response)
        if response.status_code != 200:
            raise PolicyError(f"{server.url}: {response.status_code} {message(response)}; {_HOW}.")
        try:
            made = response.json()["choices"][0]
            labels = [span["version"] for span in made["weight_versions"] for _ in range(span["start"], span["end"])]
            logprobs = tuple(float(token["logprob"]) for token in made["logprobs"]["content"])
            token_ids, finish = tuple(made["token_ids"]), str(made["finish_reason"])
        except (ValueError, LookupError, TypeError) as error:
            raise Again(f"200, but no tokens: {response.text!r:.120}") from error
        if finish not in ("stop", "length") or not len(token_ids) == len(logprobs) == len(labels):
            raise Again(f"the generation ended as {finish!r}")
        foreign = [label for label in labels if label.partition("-")[0] != self._run or label.endswith(_MIXED)]
        if foreign:
            self.servers.suspect(server, f"it answered with weights {foreign[0]!r}, which are none of this run's")
            raise Again(server.trouble)
        return Served(token_ids, logprobs, tuple(int(label.partition("-")[2]) for label in labels), finish)

    async def _greet(self, url: str) -> str | None:
        """What keeps a server from answering, or None; then it has the newest weights. Raises where it never will."""
        response = await self._get(url, "v1/models")
        if isinstance(response, str):
            return response
        if response.status_code in AGAIN:
            return f"{response.status_code} {message(response)}"
        if response.status_code != 200:
            raise PolicyError(f"{url}: {response.status_code} {message(response)}.")
        if (context := context_of(response, url, self.settings.model)) is not None:
            self._context = min(context, self._context or context)
        return await self._bring(url)

    async def _bring(self, url: str) -> str | None:
        """Have a server take the newest weights unless it has them; what went wrong, or None."""
        while True:
            newest = self._newest
            exchange = asyncio.create_task(self._exchange(url, *newest))
            self._exchanges.add(exchange)
            exchange.add_done_callback(self._exchanges.discard)
            trouble = await asyncio.shield(exchange)
            if trouble is not None or newest is self._newest:
                return trouble

    async def _exchange(self, url: str, version: int, folder: Path) -> str | None:
        label = self._label(version)
        async with self._locks[url]:
            held = await self._get(url, "weight_info")
            if isinstance(held, str):
                return held
            _require_taking(held, url)
            if held.status_code == 200 and held.json().get("weight_version") == label:
                return None
            trouble = await self._told(url, "pause?mode=keep&clear_cache=false", {})
            if trouble is not None:
                return trouble
            for path, body in (
                ("update_weight_version", {"new_version": self._label(_MIXED)}),
                ("start_weight_update", {}),
                ("update_weights", {"update_info": {"folder": str(folder)}}),
                ("finish_weight_update", {"weight_version": label}),
            ):
                trouble = await self._told(url, path, body)
                if trouble is not None:
                    break
            resumed = await self._told(url, "resume", {})
            return trouble or resumed

    async def _told(self, url: str, path: str, body: Mapping[str, Any]) -> str | None:
        """One call of the weight update; what went wrong, or None."""
        response = await self._post(url, path, body, self.settings.update_s)
        if isinstance(response, str):
            return response
        _require_taking(response, url)
        said = message(response)
        return None if response.status_code == 200 else f"/{path.partition('?')[0]}: {response.status_code} {said}"

    async def _post(
        self, url: str, path: str, body: Mapping[str, Any], limit: float | None = None
    ) -> httpx.Response | str:
        """The answer, or what broke the connection."""
        import httpx

        timeout = httpx.Timeout(limit or self.settings.request_s, connect=self.settings.connect_s)
        try:
            return await self._running().post(f"{url}/{path}", json=body, timeout=timeout)
        except httpx.TransportError as error:
            return f"{type(error).__name__} {error}".strip()

    async def _get(self, url: str, path: str) -> httpx.Response | str:
        import httpx

        try:
            return await self._running().get(f"{url}/{path}", timeout=self.settings.connect_s)
        except httpx.TransportError as error:
            return f"{type(error).__name__} {error}".strip()

    def _label(self, version: int | str) -> str:
        return f"{self._run}-{version}"

    def _running(self) -> httpx.AsyncClient:
        if self._client is None:
            raise PolicyError("servers are asked outside of their `async with` block.")
        return self._client

    async def _close(self) -> None:
        await self.servers.close()
        await asyncio.gather(*self._exchanges, return_exceptions=True)
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def _require_taking(response: httpx.Response, url: str) -> None:
    """Raise `PolicyError` where the server will never take weights as it was started."""
    if response.status_code in (401, 403):
        raise PolicyError(f"{url}: refuses a weight update ({response.status_code} {message(response)}); {_HOW}.")
    if response.status_code == 404:
        raise PolicyError(f"{url}: knows no weight updates (404); {_HOW}, or set VLLM_SERVER_DEV_MODE=1.")
