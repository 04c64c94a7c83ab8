"""Turn stored texts into tokens.

Invariant: the tokens decode to the stored text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from curation.policies.chat_templates import StopTokens
from curation.policies.completions import ResponseReader, TokenCompletion
from curation.prompts.base import Message
from curation.thinking import ThinkingTags
from training.rollouts.rollouts import chat_ids

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

OTHER_BEGINNING, OTHER_TEXT, EMPTY = "other_beginning", "other_text", "empty"


class TokenWriter:
    """Converts stored texts to tokens; ``stops`` end a response."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, stops: StopTokens, tags: ThinkingTags) -> None:
        self._tokenizer: Any = tokenizer
        self.tags, self._reader = tags, ResponseReader(tokenizer, tags)
        self._end = stops.turn_end if stops.turn_end is not None else stops.ids[0]
        self._ends = frozenset(stops.ids)

    def completion(self, prompt_ids: tuple[int, ...], row: Mapping[str, Any]) -> TokenCompletion | str:
        """Return a stored row as a completion, or why that is impossible."""
        text, finish = self.tags.house_form(row["text"]), row["finish"] or "stop"
        kept = row.get("token_ids")
        if kept and self._text(prompt_ids, kept) == text and (finish != "stop" or kept[-1] in self._ends):
            logprobs = tuple(row.get("logprobs") or ())
            return TokenCompletion(prompt_ids, tuple(kept), logprobs, (), text, finish)
        begin = self._text(prompt_ids, ())
        if not text.startswith(begin):
            return OTHER_BEGINNING
        token_ids = self.response_ids(text[len(begin) :], ended=finish == "stop")
        if not token_ids:
            return EMPTY
        if self._text(prompt_ids, token_ids) != text:
            return OTHER_TEXT
        return TokenCompletion(prompt_ids, token_ids, (), (), text, finish)

    def prompt_ids(self, chat: Sequence[Message]) -> tuple[int, ...]:
        """Return the tokens of a chat, ready for an answer."""
        return chat_ids(self._tokenizer, chat, self.tags)

    def after_prompt(self, prompt_ids: Sequence[int], text: str) -> str:
        """Return a stored text in the model's tags, without the prompt's last tag."""
        return self.tags.house_form(text).removeprefix(self._text(prompt_ids, ()))

    def response_ids(self, text: str, *, ended: bool) -> tuple[int, ...]:
        """Return a response's tokens, with an end token if it ``ended``."""
        token_ids = tuple(self._tokenizer(text, add_special_tokens=False)["input_ids"])
        return (*token_ids, self._end) if ended else token_ids

    def _text(self, prompt_ids: Sequence[int], token_ids: Sequence[int]) -> str:
        decoded = str(self._tokenizer.decode(list(token_ids), skip_special_tokens=True)) if token_ids else ""
        return self._reader.text(prompt_ids, token_ids, decoded)
