"""Requests to servers whose answer has begun already: the prompt is written out, and completed from a prefix on.

Chat interfaces differ in whether they let an assistant's turn go on, and templates write begun thoughts of an earlier
message otherwise than a model does, or leave them out. So the rendered prompt is asked for: `vllm serve` gives its
tokens (``/tokenize``), those of the prefix go behind them, and the server completes that. What has no ``/tokenize`` is
asked to continue the assistant's message (``continue_final_message``), which it refuses or does; only where the model
does not think aloud, for then a template has nothing to write otherwise.

Example: for a model whose template ends in ``<think>`` the tokens of the prompt, then those of "First, we add …"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curation.policies.client import ServerClient
from curation.policies.connection import ServerResponse
from curation.policies.servers import Server, TemporaryFailure
from curation.prompts import plain_text
from curation.prompts.base import Message
from curation.records import PolicyError, PromptRequest
from curation.thinking import ThinkingTags

_TAIL_TOKENS = 64
"""Tokens at the end of a prompt that may be an open tag."""

_MISSING = (404, 405, 501)
"""How servers say that they do not know a path."""


@dataclass(frozen=True, slots=True)
class BegunRequest:
    """Where a begun answer is asked for, with which fields beside those of every request, and what it begins with."""

    path: str
    asked: Mapping[str, Any]
    start: str

    @property
    def is_chat(self) -> bool:
        """Return whether the chat interface is asked."""
        return "messages" in self.asked


async def begin(
    client: ServerClient, messages: Sequence[Message], problem: PromptRequest, tags: ThinkingTags, *, is_chat: bool
) -> BegunRequest:
    """Return the request for an answer to a chat that begins with the problem's prefix.

    Raises:
        PolicyError: the servers cannot go on with begun thoughts.
    """
    if not is_chat:
        behind, start = tags.begun("", problem.prefix)
        return BegunRequest("/completions", {"prompt": plain_text(messages) + behind}, start)
    model = {"model": client.model}
    template = {"chat_template_kwargs": tags.template_arguments} if tags.template_arguments else {}
    rendered = await _ask(client, "../tokenize", {**model, "messages": list(messages), **template}, problem)
    if rendered is None:
        return _continued(messages, problem, tags)
    ids = list(rendered["tokens"])
    tail = await _ask(client, "../detokenize", {**model, "tokens": ids[-_TAIL_TOKENS:]}, problem) or {}
    behind, start = tags.begun(tags.end_of(str(tail.get("prompt", ""))), problem.prefix)
    asked = {**model, "prompt": behind, "add_special_tokens": False}
    written = await _ask(client, "../tokenize", asked, problem) or {}
    return BegunRequest("/completions", {"prompt": [*ids, *written["tokens"]]}, start)


def _continued(messages: Sequence[Message], problem: PromptRequest, tags: ThinkingTags) -> BegunRequest:
    if tags.are_used:
        raise PolicyError(
            f"problem {problem.id}: the server gives no tokens of a prompt (/tokenize), so nobody knows how its "
            "template writes thoughts that have begun; ask `vllm serve`, or leave the recipe's [dial] out."
        )
    begun = [*messages, Message(role="assistant", content=problem.prefix)]
    going_on = {"add_generation_prompt": False, "continue_final_message": True}
    return BegunRequest("/chat/completions", {"messages": begun, "prompt": None, **going_on}, problem.prefix)


async def _ask(
    client: ServerClient, path: str, body: Mapping[str, Any], problem: PromptRequest
) -> dict[str, Any] | None:
    """Return a server's answer at a path beside its API; None where it has no such path."""

    def read(server: Server, response: ServerResponse) -> dict[str, Any] | None:
        if response.status in _MISSING:
            return None
        client.require_ok(response, server.url)
        content = response.json()
        if not isinstance(content, dict):
            raise TemporaryFailure(f"200, but no object: {response.text!r:.80}", "unusable")
        return content

    return await client.ask(path, lambda: body, read, f"problem {problem.id}: {path}", home=problem.id)
