"""Tokens written as text, in the tags of the model that made them."""

from collections.abc import Sequence

from curation.policies.completions import ResponseReader
from curation.thinking import THINK, ThinkingTags


class Words:
    """A tokenizer whose tokens are words; some are special, as engines leave them out."""

    def __init__(self, words: Sequence[str], special: Sequence[str]) -> None:
        self.words = list(words)
        self.all_special_ids = [self.words.index(word) for word in special]

    def ids(self, text: str) -> list[int]:
        return [self.words.index(word) for word in text.split()]

    def decode(self, token_ids: Sequence[int], /, *, skip_special_tokens: bool) -> str:
        dropped = self.all_special_ids if skip_special_tokens else []
        return " ".join(self.words[token] for token in token_ids if token not in dropped)


MISTRAL = Words("[THINK] [/THINK] </s> [INST] [/INST] 2 + 4".split(), "[THINK] [/THINK] </s> [INST] [/INST]".split())
QWEN = Words("<think> </think> <|im_end|> user 2 + 4".split(), ["<|im_end|>"])


def read(tokenizer: Words, tags: ThinkingTags, prompt: str, response: str) -> str:
    token_ids = tokenizer.ids(response)
    decoded = tokenizer.decode(token_ids, skip_special_tokens=True)
    return ResponseReader(tokenizer, tags).text(tokenizer.ids(prompt), token_ids, decoded)


def test_tags_that_are_special_tokens_stay_in_the_text_and_other_special_tokens_do_not() -> None:
    tags = ThinkingTags.of("[THINK]")
    said = "[THINK] 2 + 2 [/THINK] 4 [INST] </s>"
    assert MISTRAL.decode(MISTRAL.ids(said), skip_special_tokens=True) == "2 + 2 4"
    assert read(MISTRAL, tags, "[INST] 2 + 2 [/INST]", said) == "[THINK] 2 + 2 [/THINK] 4"
    assert read(MISTRAL, ThinkingTags.of("none"), "[INST] 2 + 2 [/INST]", said) == "2 + 2 4"
    assert read(MISTRAL, THINK, "[INST] 2 + 2 [/INST]", said) == "2 + 2 4"


def test_the_tag_that_the_prompt_ends_in_stands_in_front() -> None:
    assert (
        read(QWEN, THINK, "user 2 + 2 <|im_end|> <think>", "2 + 2 </think> 4 <|im_end|>") == "<think>2 + 2 </think> 4"
    )
    assert read(QWEN, THINK, "user 2 + 2 <|im_end|> <think> </think>", "4 <|im_end|>") == "<think> </think>4"
    assert read(QWEN, THINK, "user 2 + 2 <|im_end|>", "<think> 2 </think> 4 <|im_end|>") == "<think> 2 </think> 4"
    assert read(MISTRAL, ThinkingTags.of("[THINK]"), "2 + 2 [THINK]", "2 + 2 [/THINK] 4") == "[THINK]2 + 2 [/THINK] 4"
    assert read(QWEN, ThinkingTags.of("none"), "user 2 + 2 <|im_end|> <think> </think>", "4 <|im_end|>") == "4"
