"""A prompt: system message, user message, worked examples and version."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypedDict

from curation.records import PromptRequest


class Message(TypedDict):
    """A chat message for chat templates and OpenAI-compatible servers."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt under its version; ``system`` may be empty, ``user`` makes a request's user message.

    ``examples`` are statements and responses, shown as earlier turns of the chat.

    Example: ``Prompt("solve@1", SYSTEM, lambda request: request.statement)``
    """

    version: str
    system: str
    user: Callable[[PromptRequest], str]
    examples: tuple[tuple[str, str], ...] = ()

    def messages(self, request: PromptRequest) -> list[Message]:
        """Return the chat that is sent."""
        chat: list[Message] = [{"role": "system", "content": self.system}] if self.system else []
        for statement, response in self.examples:
            chat.append({"role": "user", "content": self.user(replace(request, statement=statement))})
            chat.append({"role": "assistant", "content": response})
        return [*chat, {"role": "user", "content": self.user(request)}]


def stored_texts(name: str) -> dict[str, str]:
    """Return a table of `prompts.toml`."""
    return _tables()[name]


@cache
def _tables() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("prompts.toml").read_text(encoding="utf-8"))


def stored_prompt(name: str, user: Callable[[PromptRequest], str] = lambda request: request.statement) -> Prompt:
    """Return the prompt of a table of `prompts.toml`, whose version changes with its text."""
    texts = stored_texts(name)
    return Prompt(texts["version"], texts["system"], user)


def plain_text(messages: Sequence[Message]) -> str:
    r"""Write a chat without a chat template: contents with blank lines between, and a line break.

    Example: ``plain_text([{"role": "user", "content": "2 + 2 = ?"}])`` is ``"2 + 2 = ?\n"``.
    """
    return "\n\n".join(message["content"] for message in messages) + "\n"
