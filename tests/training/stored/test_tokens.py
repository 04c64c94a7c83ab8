"""Stored texts as tokens again: there and back, tags of the house and of the model, what the prompt ended in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.policies.chat_templates import StopTokens, folder_stop_tokens
from curation.records import SourceError
from curation.thinking import THINK, ThinkingTags
from tests.training.engines.embedded.test_run import lines, small
from training.embedded_model import WEIGHTS
from training.engines.embedded.run import train
from training.optimisation.model import load_tokenizer
from training.rollouts.attempt_log import read_attempts
from training.stored.general import GENERAL, GeneralRows, read_chats
from training.stored.tokens import EMPTY, OTHER_BEGINNING, OTHER_TEXT, TokenWriter


def writer(tags: ThinkingTags = THINK) -> TokenWriter:
    tokenizer = load_tokenizer(WEIGHTS)
    return TokenWriter(tokenizer, folder_stop_tokens(WEIGHTS, tokenizer), tags)


def test_the_models_own_texts_become_tokens_that_read_the_same(teacher: Path) -> None:
    made = writer()
    prompt = made.prompt_ids([{"role": "user", "content": "What is 1 + 1?"}])
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


def test_instruction_data_walks_through_all_rows_in_an_order_of_each_pass(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    chats = [{"prompt": f"What is {n} + 1?", "response": f"It is {n + 1}."} for n in range(5)]
    last = chats.pop()
    messages = [{"role": "user", "content": last["prompt"]}, {"role": "assistant", "content": last["response"]}]
    path.write_text("\n".join(json.dumps(row) for row in [*chats, {"messages": messages}]), encoding="utf-8")
    rows = GeneralRows(path, writer(), seed=1)
    texts = [one.completion.text for one in rows.rollouts(0, 10)]
    assert len(rows) == 5
    assert sorted(texts[:5]) == sorted(texts[5:])
    assert texts[:5] != texts[5:]
    assert [one.completion.text for one in rows.rollouts(7, 3)] == texts[7:]
    assert all(one.problem == GENERAL and one.completion.prompt_ids for one in rows.rollouts(0, 5))


def test_an_answer_may_be_a_list_of_parts_with_thoughts_apart(tmp_path: Path) -> None:
    asked = {"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "2 + 2?"}]}
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "2 and 2"}]}
    answers = [
        {"content": [thought, {"type": "text", "text": "4"}]},
        {"content": "4", "reasoning_content": "2 and 2"},
        {"content": "[THINK]\n2 and 2\n[/THINK]\n4"},
    ]
    path, magistral = tmp_path / "chat.jsonl", ThinkingTags.of("[THINK]")
    rows = [{"messages": [asked, {"role": "assistant", **answer}]} for answer in answers]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    for user, answer in read_chats(path, magistral):
        assert user["content"] == "What is 2 + 2?"
        assert answer["content"] == "<think>\n2 and 2\n</think>\n4"
    letters: object = Letters()
    writer = TokenWriter(letters, StopTokens((0,), 0, added=False), magistral)  # type: ignore[arg-type]
    assert writer.after_prompt(tuple(map(ord, "Q\n")), answer["content"]) == "[THINK]\n2 and 2\n[/THINK]\n4"
    path.write_text(json.dumps({"messages": [asked, {"role": "assistant", "content": [{"type": "image"}]}]}))
    with pytest.raises(SourceError, match=r"chat\.jsonl, row 1.*image"):
        read_chats(path)


@pytest.mark.parametrize("content", ["", '{"messages": [{"role": "user", "content": "x"}]}', "no json", "[1]"])
def test_instruction_data_that_cannot_be_read_are_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(SourceError, match=r"chat\.jsonl"):
        GeneralRows(tmp_path / "chat.jsonl", writer(), seed=1)


def test_a_cold_start_has_its_share_of_instruction_data(teacher: Path, tmp_path: Path) -> None:
    rows = [json.dumps({"prompt": f"{n}?", "response": f"{n}."}) for n in range(4)]
    (tmp_path / "chat.jsonl").write_text("\n".join(rows), encoding="utf-8")
    stored = {"runs": (str(teacher),), "only": True, "general": "chat.jsonl"}
    changes = {"objective": {"kind": "sft"}, "evaluation": {"data": None}, "optim": {"learning_rate": 1e-4}}
    made = small(steps=2, collector={"max_staleness": 0}, stored=stored, **changes, checks=False)
    train(made, tmp_path, tmp_path / "run")
    for row in lines(tmp_path / "run" / "batches.jsonl"):
        chats = sum(problem == GENERAL for problem, _ in row["stored"])
        traces = len(row["stored"]) - chats
        assert chats == max(round(traces / 9), 1)
