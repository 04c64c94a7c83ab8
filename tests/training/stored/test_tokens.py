"""Stored texts as tokens again: there and back, tags of the house and of the model, what the prompt ended in."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.policies.chat_templates import StopTokens, folder_stop_tokens
from curation.records import Domain, PromptRequest
from curation.thinking import THINK, ThinkingTags
from tests.training.engines.embedded.test_run import small
from training.embedded_model import WEIGHTS
from training.optimisation.model import load_tokenizer
from training.rollouts.attempt_log import read_attempts
from training.rollouts.rollouts import render_prompt
from training.rollouts.tasks import TrainingTask
from training.stored.tokens import EMPTY, OTHER_BEGINNING, OTHER_TEXT, TokenWriter


def writer(tags: ThinkingTags = THINK) -> TokenWriter:
    tokenizer = load_tokenizer(WEIGHTS)
    return TokenWriter(tokenizer, folder_stop_tokens(WEIGHTS, tokenizer), tags)


def test_the_models_own_texts_become_tokens_that_read_the_same(teacher: Path) -> None:
    made = writer()
    task = TrainingTask(PromptRequest("p", "What is 1 + 1?", Domain.MATH, "en"), "2")
    prompt = render_prompt(load_tokenizer(WEIGHTS), small().solving_prompt, task)
    rows = read_attempts(teacher, ["text", "finish"]).to_dicts()
    written = [made.completion(prompt, row) for row in rows]
    same = [(row, one) for row, one in zip(rows, written, strict=True) if not isinstance(one, str)]
    assert len(same) >= 0.8 * len(rows)  # a token that is no text of its own may be lost
    for row, one in same:
        assert (one.text, one.logprobs) == (row["text"], ())
        ids, logprobs = [*one.token_ids], [-1.0] * len(one.token_ids)
        known = made.completion(prompt, row | {"token_ids": ids, "logprobs": logprobs})
        assert not isinstance(known, str)
        assert ([*known.token_ids], [*known.logprobs]) == (ids, logprobs)


class Letters:
    """A tokenizer of one token a letter; 0 ends a response."""

    chat_template = None
    all_special_ids: tuple[int, ...] = (0,)

    def __call__(self, text: str, **_: object) -> dict[str, list[int]]:
        return {"input_ids": [ord(letter) for letter in text.replace("#", "")]}

    def decode(self, token_ids: list[int], **_: object) -> str:
        return "".join(chr(token) for token in token_ids if token)


@pytest.mark.parametrize(
    ("tags", "prompt", "text", "finish", "written"),
    [
        ("<think>", "Q\n", "<think>a</think>b", "stop", "<think>a</think>b\0"),
        ("<think>", "Q\n", "<think>a", "length", "<think>a"),
        ("[THINK]", "Q\n", "<think>a</think>b", "stop", "[THINK]a[/THINK]b\0"),
        ("<think>", "Q\n<think>\n", "<think>\na</think>b", "stop", "a</think>b\0"),
        ("<think>", "Q\n<think>\n", "a b", "stop", OTHER_BEGINNING),
        ("<think>", "Q\n", "<think>a # b</think>", "stop", OTHER_TEXT),
        ("<think>", "Q\n", "", "length", EMPTY),
        ("none", "Q\n", "a <think> b", "stop", "a <think> b\0"),
    ],
)
def test_a_text_is_written_as_the_model_would_have(
    tags: str, prompt: str, text: str, finish: str | None, written: str
) -> None:
    letters: object = Letters()
    made = TokenWriter(letters, StopTokens((0,), 0, added=False), ThinkingTags.of(tags))  # type: ignore[arg-type]
    found = made.completion(tuple(map(ord, prompt)), {"text": text, "finish": finish})
    assert (found if isinstance(found, str) else "".join(map(chr, found.token_ids))) == written
