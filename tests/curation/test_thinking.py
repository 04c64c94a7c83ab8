"""Thinking tags: settings, what of a prompt is the response's, one form for all texts, thoughts apart from answers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from curation.config.policies import TorchModel
from curation.policies.seeds import about_of, key_of
from curation.records import RequestRefused
from curation.thinking import THINK, ResponseParts, ThinkingTags, response_text, split_response

MISTRAL = ThinkingTags.of("[THINK]")


@pytest.mark.parametrize(
    ("setting", "opening", "closing"),
    [
        ("<think>", "<think>", "</think>"),
        ("[THINK]", "[THINK]", "[/THINK]"),
        ("<seed:think>", "<seed:think>", "</seed:think>"),
        (("<|begin|>", "<|end|>"), "<|begin|>", "<|end|>"),
        ("none", "", ""),
    ],
)
def test_settings(setting: str | tuple[str, str], opening: str, closing: str) -> None:
    assert ThinkingTags.of(setting) == ThinkingTags(opening, closing)
    assert ThinkingTags.of(setting).are_used == (setting != "none")
    assert TorchModel(model="m", thinking=setting).thinking == setting


@pytest.mark.parametrize(
    "setting",
    ["", "think", "None", "</think>", "<think]", "<think", "< think>", ("<a>", ""), ("<a>", "<a>"), ("a", "ab")],
)
def test_what_is_no_tag_is_refused(setting: str | tuple[str, str]) -> None:
    with pytest.raises(ValidationError, match=r"is no tag|neither of which"):
        TorchModel(model="m", thinking=setting)


@pytest.mark.parametrize(
    ("prompt", "end"),
    [
        ("<|assistant|>\n<think>\n", "<think>\n"),
        ("<|assistant|><think>", "<think>"),
        ("<|assistant|>\n<think>\n\n</think>\n\n", "<think>\n\n</think>\n\n"),
        ("<|assistant|>\n", ""),
        ("<think>old</think>4<|user|>more<|assistant|>", ""),
        ("write <think> first<|assistant|>", ""),
        ("<think>\nfirst", ""),
        ("</think>", ""),
        ("", ""),
    ],
)
def test_the_end_of_a_prompt_that_is_the_responses(prompt: str, end: str) -> None:
    assert THINK.end_of(prompt) == end
    assert MISTRAL.end_of(prompt) == ThinkingTags.of("none").end_of(prompt) == ""


@pytest.mark.parametrize(
    ("text", "house"),
    [
        ("[THINK]a[/THINK]b", "<think>a</think>b"),
        ("[THINK]a", "<think>a"),
        ("[THINK]a </think>[/THINK]b", "<think>a [/THINK]</think>b"),  # a word of the text ends no thoughts
        ("<think>a</think>b", "[THINK]a[/THINK]b"),  # these are not its tags
        ("b", "b"),
    ],
)
def test_the_form_of_the_house(text: str, house: str) -> None:
    assert MISTRAL.house_form(text) == house
    assert THINK.house_form(text) == ThinkingTags.of("none").house_form(text) == text


@given(st.lists(st.sampled_from(["[THINK]", "[/THINK]", "<think>", "</think>", "a", " "])).map("".join))
def test_nothing_is_lost_or_taken_for_a_tag(text: str) -> None:
    house = MISTRAL.house_form(text)
    assert house.count("<think>") == text.count("[THINK]")
    assert house.count("</think>") == text.count("[/THINK]")
    assert MISTRAL.house_form(house) == text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("<think>a</think>b", ("a", "b")),
        ("a</think>b", ("a", "b")),  # the template opened it
        ("<think>\n\n</think>\n\nb", ("\n\n", "\n\nb")),
        ("b", ("", "b")),
        ("<think>a", ("a", None)),
        ("so <think>a", ("a", None)),
        ("<think>a</think>b</think>c", ("a</think>b", "c")),
        ("", ("", "")),
    ],
)
def test_thoughts_and_answer(text: str, parts: tuple[str, str | None]) -> None:
    assert split_response(text) == ResponseParts(*parts)


def test_a_closing_tag_alone_says_that_the_template_opened_it() -> None:
    assert THINK.without_prompt("a</think>b") == "<think>a</think>b"
    for text in ("<think>a</think>b", "<think>a", "b"):
        assert THINK.without_prompt(text) == text
    assert ThinkingTags.of("none").without_prompt("a</think>b") == "a</think>b"


def test_attempts_of_other_tags_have_other_keys() -> None:
    plain = TorchModel(model="m")
    assert "thinking" not in about_of(plain)
    own = TorchModel(model="m", prompt="plain", thinking="[THINK]")
    assert own.model_dump(mode="json")["thinking"] == about_of(own)["thinking"] == "[THINK]"
    keys = {key_of(one, "m@1") for one in (plain, own, own.model_copy(update={"thinking": "<think>"}))}
    assert len(keys) == 3  # the texts of other tags are other attempts, also under the same prompt
    assert key_of(plain, "m@1").prompt == "solve@1"


WRITTEN = "<think>\n2 + 2\n</think>\n4"
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "2 +"}, {"type": "text", "text": " 2"}]}
ANSWER = {"type": "text", "text": "4", "thinking": None}  # tables give every part every key


@pytest.mark.parametrize(
    "message",
    [
        WRITTEN,
        {"role": "assistant", "content": WRITTEN, "reasoning_content": None, "tool_calls": []},
        {"content": "4", "reasoning_content": "2 + 2"},
        {"content": "4", "reasoning": "2 + 2", "reasoning_content": "2 + 2"},
        {"content": [ANSWER], "reasoning": "2 + 2"},
        {"content": [THOUGHT, ANSWER]},
        {"content": [{"type": "thinking", "thinking": "2 + 2", "closed": True}, ANSWER]},
        {"content": [THOUGHT, ANSWER], "reasoning": "2 + 2", "tool_calls": None},
        {"content": [{"type": "text", "text": "<think>\n2 + 2\n</think>\n"}, ANSWER]},
        [THOUGHT, ANSWER],
    ],
)
def test_all_forms_of_a_reply_are_one_text(message: Any) -> None:
    assert response_text(message, THINK, "here") == WRITTEN


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"role": "assistant"}, ""),
        ({"content": None, "tool_calls": None}, ""),
        ({"content": []}, ""),
        ({"content": None, "refusal": "I cannot help."}, "I cannot help."),
        ({"content": [{"type": "refusal", "refusal": "I cannot help."}]}, "I cannot help."),
        ({"content": "4", "tool_calls": [{"function": {"name": "f"}}]}, "4"),
        ({"content": None, "reasoning_content": "2 + 2 is"}, "<think>\n2 + 2 is"),  # cut off
        ({"content": [THOUGHT]}, "<think>\n2 + 2"),
        ({"content": "2 + 2</think>4"}, "<think>2 + 2</think>4"),
        (ANSWER, "4"),
    ],
)
def test_replies_without_thoughts_or_without_an_answer(message: Any, text: str) -> None:
    assert response_text(message, THINK, "here") == text


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (
            {"content": [{"type": "image_url", "image_url": "x"}]},
            "here: the reply has a part of unknown type 'image_url'",
        ),
        ({"content": [THOUGHT, {"type": "text"}]}, "a part of unknown type 'text': {'type': 'text'}"),
        ({"content": [{"type": "thinking", "thinking": [{"type": "sum"}]}]}, "unknown type 'sum'"),
        ({"content": 5}, "unknown type 'int'"),
        (None, "unknown type 'NoneType'"),
        ({"reasoning": {"summary": "x"}, "content": "4"}, "unknown type None"),
        ({"said": "4"}, "unknown type None"),
        ({"content": None, "tool_calls": [{"function": {"name": "f"}}]}, "here: the reply calls tools and has no text"),
    ],
)
def test_a_reply_that_cannot_be_read_is_refused_and_not_judged(message: Any, why: str) -> None:
    with pytest.raises(RequestRefused, match=re.escape(why)) as refused:
        response_text(message, THINK, "here")
    assert refused.value.kind == "unusable"


def test_replies_of_models_with_other_tags() -> None:
    assert response_text("[THINK]2 + 2[/THINK]4", MISTRAL, "here") == "<think>2 + 2</think>4"
    assert response_text({"content": "2 + 2[/THINK]4"}, MISTRAL, "here") == "<think>2 + 2</think>4"
    assert response_text({"content": [THOUGHT, ANSWER]}, MISTRAL, "here") == WRITTEN
    assert response_text("2 + 2</think>4", ThinkingTags.of("none"), "here") == "2 + 2</think>4"
