"""A policy that asks OpenAI-compatible servers: any number of them that hold one model.

Invariants:
  - a request that was answered is never asked again, and each call of `answer` gives one attempt or fails;
  - what a server could not answer for now (429, 5xx, no answer in time, a broken connection) is asked again after a
    pause that doubles, with chance added, of whichever server has the shortest queue; `Retry-After` is obeyed;
  - an attempt always has room for `max_tokens`, as far as the servers say how long their context is (`vllm serve` does,
    and cuts `max_tokens` silently otherwise): a problem that leaves less gets no attempt at all;
  - cancelling `answer` closes the connection, at which the server aborts the generation;
  - the key never stands in settings, errors or the store.

What it does not do: start servers, or find out which weights they hold (`revision` in the recipe says it). Where a
server parts the thoughts from the answer, they are put together again in <think> tags.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from curation.config import EndpointPolicy
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
from curation.policies.seeds import about_of, key_of, seed_of
from curation.policies.servers import Server, Servers
from curation.prompts import SOLVING, Prompt, plain_text
from curation.records import Answered, AttemptKey, Domain, PolicyError, Prompted

if TYPE_CHECKING:
    import httpx

_TOO_LONG = ("maximum context length", "context_length_exceeded", "max_tokens must be at least 1")
_PROBE_TOKENS = 16


class Endpoint:
    """OpenAI-compatible servers under the `Policy` protocol.

    Example::

        async with Endpoint(EndpointPolicy(kind="endpoint", model="m", revision="1", urls=urls), Path()) as policy:
            answered = await policy.answer(problem, 0)

    Raises:
        PolicyError: the environment lacks the key; on entering: no server answers, one refuses the key or holds
            another model, or one gives log-probabilities from before temperature and top-p.
    """

    def __init__(self, settings: EndpointPolicy, folder: Path, prompt: Prompt | None = None) -> None:  # noqa: ARG002 - all policies open alike
        self.settings = settings
        self.key: AttemptKey = key_of(settings, settings.name, prompt, api=settings.api)
        self.in_flight = settings.in_flight
        self.too_long = 0
        self._prompts = self._prompt_tokens = 0
        self._context: int | None = None
        self._no_room: set[str] = set()
        self.servers = Servers(settings.urls, settings.per_server, settings.give_up_s, self._greet)
        self._prompt = prompt or SOLVING[settings.prompt]
        self._path = "/chat/completions" if settings.api == "chat" else "/completions"
        self._client: httpx.AsyncClient | None = None
        self._headers = authorisation(settings.api_key_env, settings.model)

    @property
    def about(self) -> Mapping[str, Any]:
        """What stands in the store beside the key."""
        return {**about_of(self.settings, self._prompt), "api": self.settings.api, "revision": self.settings.revision}

    @property
    def prompt_tokens(self) -> float | None:
        """Mean tokens of the prompts answered so far, as the servers count them; None where they do not tell."""
        return self._prompt_tokens / self._prompts if self._prompts else None

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

    async def answer(self, problem: Prompted, index: int) -> Answered | None:
        """One attempt; None where the prompt leaves too little room for it (`too_long` counts them).

        Raises:
            PolicyError: a server refuses the request, it failed too often, or no server is alive.
        """
        body = self._body(problem, index)
        failed = 0
        while problem.id not in self._no_room:
            async with self.servers.one() as server:
                try:
                    answered = await self._ask(server, body)
                    if answered is not None:
                        return answered
                    self._no_room.add(problem.id)
                    break
                except Again as reason:
                    failed += 1
                    said = f"{server.url}: {reason}"
            if failed > self.settings.retries:
                raise PolicyError(f"problem {problem.id}, attempt {index}: failed {failed} times, last at {said}.")
            await asyncio.sleep(pause_after(failed, self.settings.back_off_s))
        self.too_long += 1
        return None

    async def _ask(self, server: Server, body: Mapping[str, Any]) -> Answered | None:
        """One request to one server; None where there is no room. Raises `Again` where another try is worth it."""
        import httpx

        try:
            response = await self._running().post(server.url + self._path, json=body)
        except httpx.TransportError as error:
            trouble = f"{type(error).__name__} {error}".strip()
            self.servers.suspect(server, trouble)
            raise Again(trouble) from error
        raise_if_busy(server, response)
        if response.status_code in (400, 413, 422) and any(words in response.text for words in _TOO_LONG):
            return None
        _require_allowed(response, server.url, self.settings)
        try:
            said = response.json()
            usage = said.get("usage") or {}
            prompt = int(usage.get("prompt_tokens") or 0)
            room = (self._context or sys.maxsize) - prompt
            self._prompts += prompt > 0
            self._prompt_tokens += prompt
            if room < self.settings.decoding.max_tokens:
                return None
            return self._answered(said["choices"][0], usage, server.url)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise Again(f"200, but no completion: {response.text!r:.120}") from error

    def _body(self, problem: Prompted, index: int) -> dict[str, Any]:
        decoding = self.settings.decoding
        body: dict[str, Any] = {
            "model": self.settings.model,
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            "max_tokens": decoding.max_tokens,
            "seed": seed_of(decoding.seed, problem.id, index),
        }
        messages = self._prompt.messages(problem)
        chat = self.settings.api == "chat"
        body |= {"messages": messages} if chat else {"prompt": plain_text(messages)}
        if decoding.stop:
            body["stop"] = list(decoding.stop)
        if self.settings.keep_tokens:
            body |= {"logprobs": True, "top_logprobs": 0} if chat else {"logprobs": 0}
            body["return_token_ids"] = True
        return body

    def _answered(self, choice: Mapping[str, Any], usage: Mapping[str, Any], url: str) -> Answered:
        finish = choice.get("finish_reason")
        if finish in ("abort", "error"):
            raise Again(f"the generation ended as {finish!r}")
        ids, logprobs = choice.get("token_ids"), _logprobs(choice)
        if self.settings.keep_tokens and (ids is None or logprobs is None or len(ids) != len(logprobs)):
            raise PolicyError(
                f"{url}: gives no token ids with log-probabilities; switch keep_tokens off, or ask `vllm serve`."
            )
        tokens = usage.get("completion_tokens")
        return Answered(
            text=_text(choice),
            finish=finish if finish in ("stop", "length") else None,
            tokens=tokens if isinstance(tokens, int) else len(ids) if ids is not None else None,
            token_ids=tuple(ids) if self.settings.keep_tokens and ids is not None else None,
            logprobs=logprobs if self.settings.keep_tokens else None,
        )

    async def _greet(self, url: str) -> str | None:
        """What keeps a server from answering, or None; raises where that is for good."""
        import httpx

        limit = httpx.Timeout(self.settings.connect_s)
        try:
            response = await self._running().get(f"{url}/models", timeout=limit)
        except httpx.TransportError as error:
            return f"{type(error).__name__} {error}".strip()
        if response.status_code in AGAIN:
            return f"{response.status_code} {message(response)}"
        _require_allowed(response, url, self.settings)
        if (context := context_of(response, url, self.settings.model)) is not None:
            self._context = min(context, self._context or context)
            if self.settings.decoding.max_tokens >= context:
                raise PolicyError(
                    f"{url}: decoding.max_tokens = {self.settings.decoding.max_tokens} leaves no room for a prompt in "
                    f"its context of {context} tokens; lower it, or raise the server's --max-model-len."
                )
        return await self._check_logprobs(url)

    async def _check_logprobs(self, url: str) -> str | None:
        """Refuse a server whose log-probabilities are not those of what is drawn from.

        With a tiny top-p one token is left to draw: its log-probability is 0 after top-p, and not before.
        """
        import httpx

        decoding = self.settings.decoding
        if not self.settings.keep_tokens or (decoding.temperature == 1 and decoding.top_p == 1):
            return None
        asked = Prompted("", "List the first prime numbers.", Domain.MATH, "en")
        body = {**self._body(asked, 0), "temperature": 1.0, "top_p": 1e-6, "max_tokens": _PROBE_TOKENS}
        try:
            response = await self._running().post(url + self._path, json=body)
        except httpx.TransportError as error:
            return f"{type(error).__name__} {error}".strip()
        if response.status_code in AGAIN:
            return f"{response.status_code} {message(response)}"
        _require_allowed(response, url, self.settings)
        try:
            drawn = _logprobs(response.json()["choices"][0])
        except (ValueError, LookupError, TypeError, AttributeError):
            return f"200, but no completion: {response.text!r:.120}"
        if drawn is not None and min(drawn, default=0.0) < 0:
            raise PolicyError(
                f"{url}: gives log-probabilities from before temperature and top-p; start the server with "
                "--logprobs-mode processed_logprobs, or set temperature and top_p to 1."
            )
        return None

    def _running(self) -> httpx.AsyncClient:
        if self._client is None:
            raise PolicyError(
                "servers are asked before the policy was entered, or after it was left: use `async with`."
            )
        return self._client

    async def _close(self) -> None:
        await self.servers.close()
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def _require_allowed(response: httpx.Response, url: str, settings: EndpointPolicy) -> None:
    """Raise `PolicyError` for whatever no second try will mend."""
    status = response.status_code
    if status == 200:
        return
    if status in (401, 403):
        whence = f"the key in {settings.api_key_env}" if settings.api_key_env else "a request without key: api_key_env"
        raise PolicyError(f"{url}: refuses {whence} ({status} {message(response)}).")
    if status == 404:
        raise PolicyError(f"{url}: knows no such address or model ({settings.model!r}): 404 {message(response)}.")
    raise PolicyError(f"{url}: {status} {message(response)}.")


def _text(choice: Mapping[str, Any]) -> str:
    if "text" in choice:
        return str(choice["text"])
    message = choice["message"]
    thoughts = message.get("reasoning") or message.get("reasoning_content")
    content = message.get("content") or ""
    return f"<think>\n{thoughts}\n</think>\n{content}" if thoughts else str(content)


def _logprobs(choice: Mapping[str, Any]) -> tuple[float, ...] | None:
    given = choice.get("logprobs")
    if not isinstance(given, Mapping):
        return None
    if given.get("token_logprobs") is not None:  # completions
        return tuple(float(value) for value in given["token_logprobs"])
    return tuple(float(token["logprob"]) for token in given.get("content") or ())
