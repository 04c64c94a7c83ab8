"""A policy on OpenAI-compatible servers.

Invariant: a problem without room for `max_tokens` is refused, since `vllm serve` would cut it silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

from curation.config import EndpointModel
from curation.policies.client import ServerClient, ServerResponse, message
from curation.policies.completions import FINISHED
from curation.policies.seeds import LivePolicy, seed_of
from curation.policies.servers import Server, TemporaryFailure
from curation.prompts import Prompt
from curation.records import Completion, PromptRequest, RequestRefused
from curation.thinking import THINK, response_text

_TOO_LONG = ("maximum context length", "context_length_exceeded", "max_tokens must be at least 1")
_PATH = "/chat/completions"


class Endpoint(LivePolicy):
    """OpenAI-compatible servers as a `Policy`.

    Raises:
        PolicyError: the key is missing, or on entering no server is usable.
    """

    def __init__(self, settings: EndpointModel, folder: Path, prompt: Prompt | None = None) -> None:  # noqa: ARG002 - all policies open alike
        self.settings = settings
        self.in_flight = settings.in_flight * len(settings.urls)
        self._prompts = self._prompt_tokens = 0
        super().__init__(settings, settings.name, prompt)
        self._client = ServerClient(settings, settings.model, welcome=self._welcome)
        self.servers = self._client.servers

    @property
    def health(self) -> Mapping[str, float]:
        """Return `ServerClient.health`."""
        return self._client.health

    @property
    def prompt_tokens(self) -> float | None:
        """Return the mean tokens of prompts."""
        return self._prompt_tokens / self._prompts if self._prompts else None

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def answer(self, problem: PromptRequest, index: int) -> Completion:
        """Return one attempt.

        Raises:
            RequestRefused: living servers refuse it.
            PolicyError: no server is usable.
        """
        name = f"problem {problem.id}, attempt {index}"
        return await self._client.ask(_PATH, partial(self._body, problem, index), self._read, name)

    def _read(self, server: Server, response: ServerResponse) -> Completion:
        if response.status != 200:
            if response.status in (400, 413, 422) and any(words in response.text for words in _TOO_LONG):
                raise RequestRefused("too_long", f"{server.url}: {response.status} {message(response)}.")
            self._client.require_ok(response, server.url)
        try:
            content = response.json()
            usage = content.get("usage") or {}
            prompt = int(usage.get("prompt_tokens") or 0)
            self._prompts += prompt > 0
            self._prompt_tokens += prompt
            self._require_room(server.url, prompt, self._client.context)
            return self._completion(content["choices"][0], usage, server.url)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise TemporaryFailure(f"200, but no completion: {response.text!r:.120}", "unusable") from error

    def _body(self, problem: PromptRequest, index: int) -> dict[str, Any]:
        decoding = self.settings.decoding
        body: dict[str, Any] = {
            "model": self.settings.model,
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            "max_tokens": decoding.max_tokens,
            "seed": seed_of(problem.id, index),
            "messages": self._prompt.messages(problem),
        }
        if self._tags.are_used and self._tags != THINK:
            body["skip_special_tokens"] = False  # such tags may be special tokens, which servers leave out
        return body

    def _completion(self, choice: Mapping[str, Any], usage: Mapping[str, Any], url: str) -> Completion:
        finish = choice.get("finish_reason")
        if finish in ("abort", "error"):
            raise TemporaryFailure(f"the generation ended as {finish!r}", "unusable")
        if finish == "content_filter":
            raise RequestRefused("content_filter", f"{url}: its content filter ended the answer.")
        tokens = usage.get("completion_tokens")
        return Completion(
            text=response_text(choice["message"], self._tags, url),
            finish=finish if finish in FINISHED else None,
            tokens=tokens if isinstance(tokens, int) else None,
        )

    async def _welcome(self, url: str, context: int | None) -> None:
        self._require_context(url, context, "the server's --max-model-len")
