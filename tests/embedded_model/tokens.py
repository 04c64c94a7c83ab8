"""The embedded model's tokenizer: bytes, single digits, and a few hundred merges learned from its own problems.

Every text can be written with it, since every byte has a token. Digits never merge, so a number is read digit by
digit. ``<think>``, ``</think>`` and ``\\boxed{`` are one token each and, unlike the three special tokens, plain text:
decoding keeps them.

The chat template drops system messages and whatever follows the first blank line of a user message, which is where
prompts say how to answer: the model answers in one form only and is too small to be told another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, START, END = "<|pad|>", "<|start|>", "<|end|>"
SINGLE_TOKENS = ("<think>", "</think>", "\\boxed{")
VOCABULARY = 640

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['role'] == 'user' %}{{ message['content'].split('\\n\\n')[0] }}{{ '\\n' }}"
    "{% elif message['role'] == 'assistant' %}{{ message['content'] }}{{ eos_token }}{% endif %}"
    "{% endfor %}"
)


def train_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Return a tokenizer whose merges come from these texts; the same texts give the same tokenizer."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(SINGLE_TOKENS),
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(whole, normalized=False, special=False) for whole in SINGLE_TOKENS])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=START,
        eos_token=END,
        pad_token=PAD,
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=256,
    )


def render_chat(statement: str, response: str = "") -> str:
    """Return the text that the chat template makes of one question and, where given, its answer."""
    return f"{START}{statement}\n{response}{END if response else ''}"
