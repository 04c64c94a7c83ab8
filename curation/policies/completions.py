"""Responses as tokens and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from curation.thinking import ThinkingTags

FINISHED = frozenset({"stop", "length"})
"""How whole responses end: by a stop token or text, or at the limit."""

_TAIL_TOKENS = 64
"""A prompt's last tokens that may be an open tag, even letter by letter."""


@dataclass(frozen=True, slots=True)
class TokenCompletion:
    """A response; ``logprobs`` (natural, of the sampling distribution) and ``versions`` are per token, or empty.

    ``finish`` is ``stop``, with the end token in ``token_ids``, or ``length``.
    """

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    versions: tuple[int, ...]
    text: str
    finish: str


class ResponseReader:
    """Decodes responses, with thinking tags."""

    def __init__(self, tokenizer: Any, tags: ThinkingTags) -> None:
        self._tokenizer = tokenizer
        self.tags = tags
        self._dropped = self._special_outside_tags(tokenizer) if tags.are_used else None

    def text(self, prompt_ids: Sequence[int], token_ids: Sequence[int], decoded: str) -> str:
        """Return a response after the thinking tag that ends its prompt.

        Args:
            decoded: without special tokens.
        """
        if self._dropped is not None:
            kept = [token for token in token_ids if token not in self._dropped]
            decoded = str(self._tokenizer.decode(kept, skip_special_tokens=False))
        if not self.tags.are_used:
            return decoded
        tail = list(prompt_ids[-_TAIL_TOKENS:])
        return self.tags.end_of(str(self._tokenizer.decode(tail, skip_special_tokens=False))) + decoded

    def _special_outside_tags(self, tokenizer: Any) -> frozenset[int] | None:
        """Return special tokens outside of tags, if tags have any."""
        added = getattr(tokenizer, "added_tokens_decoder", {})  # vLLM's own tokenizers have none
        special = {*tokenizer.all_special_ids, *(number for number, token in added.items() if token.special)}
        words = {number: str(tokenizer.decode([number], skip_special_tokens=False)).strip() for number in special}
        tags = (self.tags.open, self.tags.close)
        in_tags = {number for number, word in words.items() if word and any(word in tag for tag in tags)}
        return frozenset(special - in_tags) if in_tags else None
