"""Chat templates and end tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.policies.checkpoints import end_tokens
from curation.prompts.asked import ADD_SYSTEM
from curation.prompts.base import Message
from curation.records import PolicyError

_ANSWER = "The answer is 2."
_QUESTION: Message = {"role": "user", "content": "What is 1 + 1?"}
_CHAT: tuple[Message, ...] = (_QUESTION, {"role": "assistant", "content": _ANSWER})


@dataclass(frozen=True, slots=True)
class StopTokens:
    """Tokens that end a response; ``turn_end`` is the chat template's."""

    ids: tuple[int, ...]
    turn_end: int | None
    added: bool

    def phrase(self, tokenizer: Any) -> str:
        """Return them in words."""
        names = ", ".join(f"{tokenizer.decode([token])} ({token})" for token in self.ids)
        ends = f"{names} {'ends' if len(self.ids) == 1 else 'end'} a response"
        if self.added:
            return f"{ends}; the last was added, as the chat template uses it and generation_config.json lacks it"
        return ends if self.turn_end is not None else f"{ends}; the chat template ends turns with no token of its own"


def apply_chat_template(tokenizer: Any, messages: Sequence[Message], **options: Any) -> Any:
    """Apply the chat template, without a default system message.

    Raises:
        PolicyError: it refuses the chat.
    """
    from jinja2.exceptions import TemplateError

    if not any(message["role"] == "system" for message in messages):
        options[ADD_SYSTEM] = False
    try:
        return tokenizer.apply_chat_template(list(messages), **options)
    except TemplateError as error:
        advice = "fix its chat_template"
        if any(message["role"] == "system" for message in messages):
            advice = 'set prompt = "plain", or take a chat_template that puts the system message somewhere'
        raise PolicyError(
            f"{getattr(tokenizer, 'name_or_path', 'the tokenizer')}: the chat template refuses the prompt "
            f"({str(error).rstrip('.')}); {advice}."
        ) from error


def stop_tokens(tokenizer: Any, own: Sequence[int]) -> StopTokens:
    """Return the end tokens of model (``own``), tokenizer and template.

    Raises:
        PolicyError: there are none.
    """
    known = list(own)
    if tokenizer.eos_token_id is not None:
        known.append(int(tokenizer.eos_token_id))
    turn_end = turn_end_token(tokenizer)
    ids = dict.fromkeys([*known, *([] if turn_end is None else [turn_end])])
    if not ids:
        name = getattr(tokenizer, "name_or_path", "the model")
        raise PolicyError(
            f"{name}: neither generation_config.json nor the tokenizer names an end token, so that no response would "
            "ever end; set `eos_token_id` in generation_config.json."
        )
    return StopTokens(tuple(ids), turn_end, turn_end is not None and turn_end not in known)


def folder_stop_tokens(folder: Path, tokenizer: Any) -> StopTokens:
    """Return a folder's end tokens."""
    return stop_tokens(tokenizer, end_tokens(folder))


def turn_end_token(tokenizer: Any) -> int | None:
    """Return the special token after an answer or before another turn."""
    if getattr(tokenizer, "chat_template", None) is None:
        return None
    for chat in (_CHAT, (*_CHAT, _QUESTION)):
        try:
            text = apply_chat_template(tokenizer, chat, tokenize=False)
        except PolicyError:
            return None
        _, answer, tail = text.rpartition(_ANSWER)
        if not answer:
            return None
        if tail.strip():
            return _first_special(tokenizer, tail)
    return None


def special_tokens(tokenizer: Any) -> set[int]:
    """Return a tokenizer's special and added tokens."""
    return {*tokenizer.all_special_ids, *getattr(tokenizer, "added_tokens_decoder", ())}


def _first_special(tokenizer: Any, tail: str) -> int | None:
    special = special_tokens(tokenizer)
    for token in tokenizer.encode(tail, add_special_tokens=False):
        if token in special:
            return int(token)
        if tokenizer.decode([token]).strip():
            return None
    return None
