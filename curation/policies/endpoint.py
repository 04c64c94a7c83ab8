"""A policy that asks OpenAI-compatible servers, any number of them with one model.

Invariants, in addition to those of `curation.policies.client`:
  - an attempt always has room for `max_tokens`, if the server states its context: `vllm serve` does, and cuts
    `max_tokens` silently otherwise. A problem that leaves less room is refused;
  - log-probabilities are those of the distribution that was drawn from; servers that give others are refused.

It starts no servers and cannot find out which weights they hold (`revision` states it).
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

from curation.config import EndpointModel
from curation.policies.client import ServerClient, ServerResponse, message
from curation.policies.completions import FINISHED
from curation.policies.seeds import about_of, key_of, prompt_of, seed_of
from curation.policies.servers import Server, TemporaryFailure
from curation.prompts import Prompt, plain_text
from curation.records import AttemptKey, Completion, Domain, PolicyError, PromptRequest, RequestRefused
from curation.thinking import THINK, ThinkingTags, response_text

_TOO_LONG = ("maximum context length", "context_length_exceeded", "max_tokens must be at least 1")
_PROBE_TOKENS = 16


class Endpoint:
    """OpenAI-compatible servers under the `Policy` protocol.

    Raises:
        PolicyError: the environment lacks the key; on entering: no server answers, one refuses the key or holds
            another model, or one gives log-probabilities from before temperature and top-p.
    """

    def __init__(self, settings: EndpointModel, folder: Path, prompt: Prompt | None = None) -> None:  # noqa: ARG002 - all policies open alike
        self.settings = settings
        self.key: AttemptKey = key_of(settings, settings.name, prompt, api=settings.api)
        self.in_flight = settings.in_flight * len(settings.urls)
        self._prompts = self._prompt_tokens = 0
        self._no_room: dict[str, str] = {}
        self._client = ServerClient(settings, settings.model, welcome=self._welcome)
        self.servers = self._client.servers
        self._prompt = prompt or prompt_of(settings)
        self._tags = ThinkingTags.of(settings.thinking)
        self._path = "/chat/completions" if settings.api == "chat" else "/completions"

    @property
    def about(self) -> Mapping[str, Any]:
        """Return what the store notes next to the key."""
        return {**about_of(self.settings, self._prompt), "api": self.settings.api, "revision": self.settings.revision}

    @property
    def health(self) -> Mapping[str, float]:
        """Return how the servers fare, see `ServerClient.health`."""
        return self._client.health

    @property
    def prompt_tokens(self) -> float | None:
        """Return the mean tokens of the prompts answered so far; None if the servers do not count them."""
        return self._prompt_tokens / self._prompts if self._prompts else None

    def asking(self, prompt: Prompt | None) -> Endpoint:
        """Return a policy with this prompt, or that of the settings, that asks the same servers."""
        other = copy.copy(self)
        other.key = key_of(self.settings, self.settings.name, prompt, api=self.settings.api)
        other._prompt, other._no_room = prompt or prompt_of(self.settings), {}
        return other

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def answer(self, problem: PromptRequest, index: int) -> Completion:
        """Return one attempt.

        Raises:
            RequestRefused: the servers live and refuse the request, as too long for instance.
            PolicyError: a server refuses all requests, or no server is alive.
        """
        if (why := self._no_room.get(problem.id)) is not None:
            raise RequestRefused("too_long", why)
        try:
            name = f"problem {problem.id}, attempt {index}"
            body = partial(self._body, problem, index)
            return await self._client.ask(self._path, body, self._read, name)
        except RequestRefused as refused:
            if refused.kind == "too_long":
                self._no_room[problem.id] = refused.reason
            raise

    def _read(self, server: Server, response: ServerResponse) -> Completion:
        """Return the attempt of a response.

        Raises:
            RequestRefused: there was no room for it, or the server refuses the prompt.
            TemporaryFailure: the response holds no completion.
        """
        if response.status != 200:
            if response.status in (400, 413, 422) and any(words in response.text for words in _TOO_LONG):
                raise RequestRefused("too_long", f"{server.url}: {response.status} {message(response)}.")
            self._client.require_ok(response, server.url)
        try:
            content = response.json()
            usage = content.get("usage") or {}
            prompt = int(usage.get("prompt_tokens") or 0)
            room = (self._client.context or sys.maxsize) - prompt
            self._prompts += prompt > 0
            self._prompt_tokens += prompt
            if room < self.settings.decoding.max_tokens:
                raise RequestRefused(
                    "too_long",
                    f"{server.url}: a prompt of {prompt} tokens leaves no room for decoding.max_tokens = "
                    f"{self.settings.decoding.max_tokens} in a context of {self._client.context} tokens.",
                )
            return self._completion(content["choices"][0], usage, server.url)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise TemporaryFailure(f"200, but no completion: {response.text!r:.120}", "unusable") from error

    def _body(self, problem: PromptRequest, index: int) -> dict[str, Any]:
        """Return the request for one attempt."""
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
        if self._tags.are_used and self._tags != THINK:
            body["skip_special_tokens"] = False  # such tags may be special tokens, which servers leave out
        if self.settings.keep_tokens:
            body |= {"logprobs": True, "top_logprobs": 0} if chat else {"logprobs": 0}
            body["return_token_ids"] = True
        return body

    def _completion(self, choice: Mapping[str, Any], usage: Mapping[str, Any], url: str) -> Completion:
        finish = choice.get("finish_reason")
        if finish in ("abort", "error"):
            raise TemporaryFailure(f"the generation ended as {finish!r}", "unusable")
        if finish == "content_filter":
            raise RequestRefused("content_filter", f"{url}: its content filter ended the answer.")
        token_ids, logprobs = choice_token_ids(choice), choice_logprobs(choice)
        if self.settings.keep_tokens and (token_ids is None or logprobs is None or len(token_ids) != len(logprobs)):
            raise PolicyError(
                f"{url}: gives no token ids with log-probabilities; switch keep_tokens off, or ask `vllm serve`."
            )
        tokens = usage.get("completion_tokens")
        return Completion(
            text=response_text(choice["text"] if "text" in choice else choice["message"], self._tags, url),
            finish=finish if finish in FINISHED else None,
            tokens=tokens if isinstance(tokens, int) else len(token_ids) if token_ids is not None else None,
            token_ids=token_ids if self.settings.keep_tokens else None,
            logprobs=logprobs if self.settings.keep_tokens else None,
        )

    async def _welcome(self, url: str, context: int | None) -> None:
        """Refuse a server whose context is too short, or whose log-probabilities are from before temperature and top-p.

        With a tiny top-p only one token can be drawn: its log-probability is 0 after top-p, and not before.
        """
        decoding = self.settings.decoding
        if context is not None and decoding.max_tokens >= context:
            raise PolicyError(
                f"{url}: decoding.max_tokens = {decoding.max_tokens} leaves no room for a prompt in its context of "
                f"{context} tokens; lower it, or raise the server's --max-model-len."
            )
        if not self.settings.keep_tokens or (decoding.temperature == 1 and decoding.top_p == 1):
            return
        probe = PromptRequest("", "List the first prime numbers.", Domain.MATH, "en")
        body = {**self._body(probe, 0), "temperature": 1.0, "top_p": 1e-6, "max_tokens": _PROBE_TOKENS}
        response = await self._client.post(url + self._path, body)
        self._client.require_ok(response, url)
        try:
            logprobs = choice_logprobs(response.json()["choices"][0])
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise TemporaryFailure(f"200, but no completion: {response.text!r:.120}") from error
        if logprobs is not None and min(logprobs, default=0.0) < 0:
            raise PolicyError(
                f"{url}: gives log-probabilities from before temperature and top-p; start the server with "
                "--logprobs-mode processed_logprobs, or set temperature and top_p to 1."
            )


def choice_token_ids(choice: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Return the ids of a choice's tokens; None if the server gives none."""
    token_ids = choice.get("token_ids")
    return None if token_ids is None else tuple(token_ids)


def choice_logprobs(choice: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Return the log-probability of each token of a choice; None if the server gives none."""
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, Mapping):
        return None
    if logprobs.get("token_logprobs") is not None:  # completions
        return tuple(float(value) for value in logprobs["token_logprobs"])
    return tuple(float(token["logprob"]) for token in logprobs.get("content") or ())
