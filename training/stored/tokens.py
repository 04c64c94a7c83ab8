"""Turn stored texts into the tokens that the model would have drawn.

Invariant: the tokens decode to the stored text; other attempts are refused with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from curation.policies.chat_templates import StopTokens
from curation.policies.completions import ResponseReader, TokenCompletion
from curation.thinking import ThinkingTags

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
        """Return a stored row as a response, without unknown ``logprobs``, or why that is impossible."""
        text, finish = self.tags.house_form(row["text"]), row["finish"] or "stop"
        kept = row.get("token_ids")
        if kept and self._text(prompt_ids, kept) == text and (finish != "stop" or kept[-1] in self._ends):
            logprobs = tuple(row.get("logprobs") or ())
            return TokenCompletion(prompt_ids, tuple(kept), logprobs, (), text, finish)
        begin = self._text(prompt_ids, ())
        if not text.startswith(begin):
            return OTHER_BEGINNING
        token_ids = tuple(self._tokenizer(text[len(begin) :], add_special_tokens=False)["input_ids"])
        if finish == "stop":
            token_ids = (*token_ids, self._end)
        if not token_ids:
            return EMPTY
        if self._text(prompt_ids, token_ids) != text:
            return OTHER_TEXT
        return TokenCompletion(prompt_ids, token_ids, (), (), text, finish)

    def _text(self, prompt_ids: Sequence[int], token_ids: Sequence[int]) -> str:
        decoded = str(self._tokenizer.decode(list(token_ids), skip_special_tokens=True)) if token_ids else ""
        return self._reader.text(prompt_ids, token_ids, decoded)
