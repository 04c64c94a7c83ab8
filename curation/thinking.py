"""Tags around a model's thoughts.

Invariants: policies return, and stores hold, responses with `THINK` tags. Tags are never guessed from a chat template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curation.records import RequestRefused

OPEN, CLOSE = "<think>", "</think>"

NONE = "none"

_SETTING = re.compile(r"([<\[])([^<>\[\]/\s]+)([>\]])")
_MESSAGE_KEYS = frozenset({"role", "content", "reasoning", "reasoning_content", "refusal", "tool_calls"})
"""Keys of messages, not of their parts."""

_SPACE_CHARS = 64


@dataclass(frozen=True, slots=True)
class ThinkingTags:
    """Tags around thoughts; empty without thoughts.

    Example: ``ThinkingTags.of("[THINK]") == ThinkingTags("[THINK]", "[/THINK]")``
    """

    open: str
    close: str

    @classmethod
    def of(cls, setting: str | Sequence[str]) -> ThinkingTags:
        """Return the tags of a setting: a tag in angle or square brackets, two tags, or `none`.

        Raises:
            ValueError: it is none of these, or one tag contains the other.
        """
        if setting == NONE:
            return cls("", "")
        if not isinstance(setting, str):
            opening, closing = setting
            if not opening or not closing or opening in closing or closing in opening:
                raise ValueError(f"{list(setting)!r}: give two tags, neither of which is a part of the other")
            return cls(opening, closing)
        match = _SETTING.fullmatch(setting)
        if match is None or match[1] + match[3] not in ("<>", "[]"):
            raise ValueError(f'{setting!r} is no tag; write "<think>", "[THINK]", ["OPENING", "CLOSING"] or "{NONE}"')
        return cls(setting, f"{match[1]}/{match[2]}{match[3]}")

    @property
    def are_used(self) -> bool:
        """Return whether the model thinks."""
        return bool(self.open)

    @property
    def template_arguments(self) -> dict[str, bool]:
        """Return chat template arguments that switch unused thinking off."""
        return {} if self.are_used else {"enable_thinking": False, "thinking": False}

    def end_of(self, prompt: str) -> str:
        """Return a prompt's final open tag or empty pair, with white space."""
        if not self.are_used:
            return ""
        tail = prompt[-len(self.open) - len(self.close) - _SPACE_CHARS :]
        match = re.search(rf"{re.escape(self.open)}\s*(?:{re.escape(self.close)}\s*)?\Z", tail)
        return match[0] if match is not None else ""

    def without_prompt(self, text: str) -> str:
        """Add a missing open tag to a response."""
        before, closing, _ = text.partition(self.close) if self.are_used else (text, "", "")
        return self.open + text if closing and self.open not in before else text

    def house_form(self, text: str) -> str:
        """Exchange these tags and `THINK`, in both directions."""
        if not self.are_used or self == THINK:
            return text
        exchanged = {self.open: OPEN, self.close: CLOSE, OPEN: self.open, CLOSE: self.close}
        longest_first = sorted(exchanged, key=len, reverse=True)
        return re.sub("|".join(map(re.escape, longest_first)), lambda match: exchanged[match[0]], text)


THINK = ThinkingTags(OPEN, CLOSE)
"""Tags of most models and of stored responses."""


@dataclass(frozen=True, slots=True)
class ResponseParts:
    """Thoughts and answer, which is None if the thoughts never end."""

    thoughts: str
    answer: str | None


def split_response(text: str) -> ResponseParts:
    """Split a response at the last closing tag; without tags, all is the answer.

    Example: ``split_response("<think>2 + 2</think>4") == ResponseParts("2 + 2", "4")``
    """
    thoughts, closing, answer = text.rpartition(CLOSE)
    if closing:
        return ResponseParts(thoughts.removeprefix(OPEN), answer)
    _, opening, unfinished = text.partition(OPEN)
    return ResponseParts(unfinished, None) if opening else ResponseParts("", text)


def response_text(message: Any, tags: ThinkingTags, where: str) -> str:
    """Return a response with `THINK` tags.

    Args:
        message: text, parts, or a chat message; a refusal counts as text.

    Raises:
        RequestRefused: a part's type is unknown, or the message only calls tools.
    """
    content, reasoning = message, ""
    if isinstance(message, Mapping) and _MESSAGE_KEYS & message.keys():
        content = message.get("content") or message.get("refusal") or ""
        reasoning = message.get("reasoning") or message.get("reasoning_content") or ""  # newer servers send both, alike
        if not content and (message.get("tool_calls") or message.get("function_call")):
            raise RequestRefused(
                "unusable", f"{where}: the reply calls tools and has no text; serve without a tool parser."
            )
    if isinstance(content, str) and not reasoning:  # nearly all replies
        return tags.house_form(tags.without_prompt(content))
    parts = list(_parts(content, where))
    thoughts = "".join(text for _, text in _parts(reasoning, where))
    thoughts = thoughts or "".join(text for is_thought, text in parts if is_thought)
    answer = "".join(text for is_thought, text in parts if not is_thought)
    if not thoughts:
        return tags.house_form(tags.without_prompt(answer))
    return f"{OPEN}\n{thoughts}\n{CLOSE}\n{answer}" if answer else f"{OPEN}\n{thoughts}"


def _parts(content: Any, where: str) -> Iterator[tuple[bool, str]]:
    """Yield (is a thought, text) per part."""
    if isinstance(content, str):
        yield False, content
        return
    for part in content if isinstance(content, list | tuple) else [content]:
        kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
        if kind == "thinking":
            yield True, "".join(text for _, text in _parts(part.get("thinking") or "", where))
        elif kind in ("text", "refusal") and isinstance(part.get(kind), str):
            yield False, part[kind]
        else:
            raise RequestRefused("unusable", f"{where}: the reply has a part of unknown type {kind!r}: {part!r:.80}.")
