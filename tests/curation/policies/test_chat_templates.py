"""Chat templates of the kinds that real models have: which token ends a turn, and prompts that they refuse."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.policies.chat_templates import (
    StopTokens,
    apply_chat_template,
    folder_stop_tokens,
    stop_tokens,
    turn_end_token,
)
from curation.policies.checkpoints import end_tokens
from curation.records import PolicyError

TURN = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
OPEN = "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}{% endfor %}"
LETTERS = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n\n{% endfor %}"
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}" + TURN
NO_ANSWER = "{% if messages[-1].role != 'user' %}{{ raise_exception('users speak last') }}{% endif %}" + TURN
ADDED = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|user|>", "<|assistant|>")
EOS, IM_END, USER = 256, 258, 259


def tokenizer(template: str | None, eos: str | None = "<|endoftext|>") -> Any:
    """Bytes, and the special tokens of real chat models."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    of_bytes = Tokenizer(models.BPE(vocab={letter: n for n, letter in enumerate(letters)}, merges=[]))
    of_bytes.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    of_bytes.decoder = decoders.ByteLevel()
    of_bytes.add_special_tokens([AddedToken(text, special=True) for text in ADDED])
    made = PreTrainedTokenizerFast(tokenizer_object=of_bytes, eos_token=eos)
    if template is not None:
        made.chat_template = template
    return made


@pytest.mark.parametrize(
    ("template", "ends"),
    [
        (TURN, IM_END),
        (TURN.replace("<|im_end|>", "\n<|im_end|>"), IM_END),  # behind a line break
        (TURN.replace("<|im_end|>", "<|endoftext|>"), EOS),
        (OPEN, USER),  # nothing behind an answer but the user's next turn
        (LETTERS, None),
        (NO_SYSTEM, IM_END),
        (NO_ANSWER, None),
        (None, None),
    ],
)
def test_the_token_that_ends_a_turn(template: str | None, ends: int | None) -> None:
    assert turn_end_token(tokenizer(template)) == ends


def test_a_template_that_ends_turns_otherwise_than_the_settings_adds_its_token() -> None:
    asked = tokenizer(TURN)
    stops = stop_tokens(asked, [EOS])
    assert stops == StopTokens((EOS, IM_END), IM_END, added=True)
    assert "<|im_end|> (258) end a response; the last was added" in stops.phrase(asked)
    assert stop_tokens(asked, [EOS, IM_END]) == StopTokens((EOS, IM_END), IM_END, added=False)
    assert stop_tokens(tokenizer(TURN, eos="<|im_end|>"), []) == StopTokens((IM_END,), IM_END, added=False)
    assert stop_tokens(tokenizer(LETTERS), [7]).ids == (7, EOS)
    with pytest.raises(PolicyError, match="names an end token"):
        stop_tokens(tokenizer(LETTERS, eos=None), [])


def test_the_models_own_end_tokens_are_read_from_its_settings(tmp_path: Path) -> None:
    assert end_tokens(tmp_path) == ()
    config = {"text_config": {"eos_token_id": 5}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert end_tokens(tmp_path) == (5,)
    (tmp_path / "config.json").write_text(json.dumps({**config, "eos_token_id": [6, 7]}))
    assert end_tokens(tmp_path) == (6, 7)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": 8}))
    assert end_tokens(tmp_path) == (8,)
    assert folder_stop_tokens(tmp_path, tokenizer(TURN)).ids == (8, EOS, IM_END)
    for damaged in ("", "[1]"):
        (tmp_path / "generation_config.json").write_text(damaged)
        with pytest.raises(PolicyError, match=r"generation_config\.json cannot be read .* copy the model again"):
            end_tokens(tmp_path)


def test_a_template_that_refuses_a_system_message_says_so_in_a_sentence() -> None:
    asked = tokenizer(NO_SYSTEM)
    with pytest.raises(PolicyError, match=r'refuses the prompt \(System role not supported\); set prompt = "plain"'):
        apply_chat_template(asked, [{"role": "system", "content": "?"}, {"role": "user", "content": "!"}])
    alone = apply_chat_template(asked, [{"role": "user", "content": "!"}], tokenize=False)
    assert alone == "<|im_start|>user\n!<|im_end|>\n"
