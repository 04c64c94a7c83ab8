"""A tokenizer that loses nothing, for trainers that judge tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

Responses = Sequence[Mapping[str, str]]


def byte_tokenizer() -> Any:
    """A tokenizer that gives every text back as it was, with a chat template of <|im_start|> and <|im_end|>."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    raw.pre_tokenizer, raw.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|pad|>", clean_up_tokenization_spaces=False
    )
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    return tokenizer


def response_ids(tokenizer: Any, text: str) -> list[int]:
    """The tokens of a response, with the one that ends it."""
    return [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]


def rewards_of(reward: Callable[[Mapping[str, str]], Awaitable[float]], responses: Responses) -> list[float]:
    """Ask for one reward after another."""

    async def ask() -> list[float]:
        return [await reward(response) for response in responses]

    return asyncio.run(ask())
