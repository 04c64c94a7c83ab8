"""Instruction data for a cold start, as rollouts without reward or pass rate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from curation.policies.completions import TokenCompletion
from curation.prompts.base import Message
from curation.records import Outcome, RequestRefused, SourceError
from curation.thinking import NONE, THINK, ThinkingTags, response_text
from training.rewards import Reward
from training.rollouts.curriculum import shuffled
from training.rollouts.rollouts import Rollout
from training.stored.tokens import TokenWriter

SHARE = 0.1
"""Share of a batch's sequences (paper: 10 %)."""

_NO_TAGS = ThinkingTags.of(NONE)

GENERAL = "general"
"""Problem id of instruction data."""


class GeneralRows:
    """Instruction data from a .jsonl or .parquet file, shuffled by a seed."""

    def __init__(self, path: Path, writer: TokenWriter, seed: int) -> None:
        self._writer, self._seed = writer, seed
        self._chats = read_chats(path, writer.tags)

    def __len__(self) -> int:
        return len(self._chats)

    def rollouts(self, start: int, count: int) -> list[Rollout]:
        """Return rows from number ``start`` of endless shuffled passes."""
        return [self._rollout(number) for number in range(start, start + count)]

    def _rollout(self, number: int) -> Rollout:
        turn, index = divmod(number, len(self._chats))
        chat = self._chats[shuffled(range(len(self._chats)), f"{self._seed}|general|{turn}")[index]]
        prompt_ids = self._writer.prompt_ids(chat[:-1])
        text = self._writer.after_prompt(prompt_ids, chat[-1]["content"])
        token_ids = self._writer.response_ids(text, ended=True)
        completion = TokenCompletion(prompt_ids, token_ids, (), (), text, "stop")
        return Rollout(GENERAL, completion, Reward(correct=True), Outcome.CORRECT, GENERAL)


def read_chats(path: Path, tags: ThinkingTags = THINK) -> list[list[Message]]:
    """Return a file's chats, which end with an answer in the default thinking tags."""
    chats = [_chat(row, f"{path}, row {number}", tags) for number, row in enumerate(_rows(path), 1)]
    if not chats:
        raise SourceError(f"{path} holds no row; give another stored.general")
    return chats


def _rows(path: Path) -> list[Any]:
    try:
        if path.suffix == ".parquet":
            return list(pl.read_parquet(path, glob=False).iter_rows(named=True))
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise SourceError(f"{path}: the instruction data cannot be read ({error}); correct stored.general") from error


def _chat(row: Any, label: str, tags: ThinkingTags) -> list[Message]:
    messages: Any = row.get("messages") if isinstance(row, Mapping) else ()
    if messages is None and row.get("prompt") and row.get("response"):
        messages = [{"role": "user", "content": row["prompt"]}, {"role": "assistant", "content": row["response"]}]
    is_chat = isinstance(messages, list) and all(
        isinstance(message, Mapping) and "role" in message for message in messages
    )
    if not is_chat or len(messages) < 2 or messages[-1]["role"] != "assistant" or not messages[-1].get("content"):
        raise SourceError(
            f"{label}: no `messages` that end with the assistant's, and no `prompt` and `response`; correct the row"
        )
    try:
        own_tags = [*[_NO_TAGS] * (len(messages) - 1), tags]
        texts = [response_text(message, own, label) for message, own in zip(messages, own_tags, strict=True)]
    except RequestRefused as error:
        raise SourceError(f"{error.reason}; correct the row") from error
    return [Message(role=str(message["role"]), content=text) for message, text in zip(messages, texts, strict=True)]
