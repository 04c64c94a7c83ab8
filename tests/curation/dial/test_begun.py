"""A response that has begun: what stands behind the prompt, and what the response begins with."""

from __future__ import annotations

import pytest

from curation.policies.completions import ResponseReader
from curation.thinking import NONE, THINK, ThinkingTags
from training.embedded_model import WEIGHTS
from training.optimisation.model import load_tokenizer


@pytest.mark.parametrize(
    ("setting", "prompt_end", "prefix", "begun"),
    [
        ("<think>", "", "<think>First", ("<think>First", "<think>First")),
        ("<think>", "<think>\n", "<think>\nFirst", ("First", "<think>\nFirst")),
        ("<think>", "<think>\n", "<think>First", ("First", "<think>\nFirst")),
        ("<think>", "<think>", "<think>\nFirst", ("First", "<think>First")),
        ("[THINK]", "", "<think>First", ("[THINK]First", "[THINK]First")),
        ("[THINK]", "[THINK]\n", "<think>First", ("First", "[THINK]\nFirst")),
        (NONE, "", "First", ("First", "First")),
    ],
)
def test_a_tag_is_not_written_twice(setting: str, prompt_end: str, prefix: str, begun: tuple[str, str]) -> None:
    assert ThinkingTags.of(setting).begun(prompt_end, prefix) == begun


def test_tokens_of_the_prompt_stay_and_those_of_the_prefix_follow() -> None:
    tokenizer = load_tokenizer(WEIGHTS)
    reader = ResponseReader(tokenizer, THINK)
    prompt = tuple(tokenizer.encode("What is 2 + 2?\n", add_special_tokens=False))
    bare, begun = reader.begin(prompt, ""), reader.begin(prompt, "<think>2+2:")
    assert (bare.token_ids, bare.start) == (prompt, "")
    assert begun.token_ids[: len(prompt)] == prompt
    assert tokenizer.decode(list(begun.token_ids[len(prompt) :])) == "<think>2+2:" == begun.start
    rest = tokenizer.encode("4</think>", add_special_tokens=False)
    assert reader.text(begun.token_ids, rest, tokenizer.decode(rest), begun.start) == "<think>2+2:4</think>"
