"""Thinking tags: settings, what of a prompt is the response's, one form for all texts, thoughts apart from answers."""

from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from curation.config.policies import TorchModel
from curation.policies.seeds import LivePolicy
from curation.records import RequestRefused
from curation.thinking import THINK, ThinkingTags, response_text, split_response
from tests.curation.tables import check_refused, check_table

MISTRAL = ThinkingTags.of("[THINK]")


def test_settings_and_what_is_no_tag() -> None:
    def tags(setting: str | list[str]) -> tuple[str, str]:
        wanted = tuple(setting) if isinstance(setting, list) else setting
        found = ThinkingTags.of(wanted)
        assert found.are_used == (setting != "none")
        assert TorchModel(model="m", thinking=wanted).thinking == wanted
        return found.open, found.close

    check_table("thinking tags", tags)

    def model(setting: str | list[str]) -> TorchModel:
        return TorchModel(model="m", thinking=tuple(setting) if isinstance(setting, list) else setting)

    check_refused("no tags", model, ValidationError)


def test_the_end_of_a_prompt_that_is_the_responses_and_the_form_of_the_house() -> None:
    check_table("end of a prompt", THINK.end_of)
    check_table("house form", MISTRAL.house_form)


@given(st.lists(st.sampled_from(["[THINK]", "[/THINK]", "<think>", "</think>", "a", " "])).map("".join))
def test_nothing_is_lost_or_taken_for_a_tag(text: str) -> None:
    house = MISTRAL.house_form(text)
    assert house.count("<think>") == text.count("[THINK]")
    assert house.count("</think>") == text.count("[/THINK]")
    assert MISTRAL.house_form(house) == text


def test_thoughts_and_answer_and_a_closing_tag_alone_whose_opening_tag_is_the_templates() -> None:
    check_table("thoughts and answer", lambda text: astuple(split_response(text)))
    assert THINK.without_prompt("a</think>b") == "<think>a</think>b"
    for text in ("<think>a</think>b", "<think>a", "b"):
        assert THINK.without_prompt(text) == text
    assert ThinkingTags.of("none").without_prompt("a</think>b") == "a</think>b"


def test_attempts_of_other_tags_have_other_keys() -> None:
    plain = TorchModel(model="m")
    own = TorchModel(model="m", prompt="plain", thinking="[THINK]")
    assert own.model_dump(mode="json")["thinking"] == LivePolicy(own, "m@1", None).about["thinking"] == "[THINK]"
    keys = {LivePolicy(one, "m@1", None).key for one in (plain, own, own.model_copy(update={"thinking": "<think>"}))}
    assert len(keys) == 3  # the texts of other tags are other attempts, also under the same prompt
    assert LivePolicy(plain, "m@1", None).key.prompt == "solve@1"


WRITTEN = "<think>\n2 + 2\n</think>\n4"
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "2 +"}, {"type": "text", "text": " 2"}]}
ANSWER = {"type": "text", "text": "4", "thinking": None}  # tables give every part every key


def test_all_forms_of_a_reply_are_one_text_and_one_that_cannot_be_read_is_refused_and_not_judged() -> None:
    check_table("replies", lambda message: response_text(message, THINK, "here"))
    check_refused("replies refused", lambda message: response_text(message, THINK, "here"), RequestRefused)
    with pytest.raises(RequestRefused) as refused:
        response_text(None, THINK, "here")
    assert refused.value.kind == "unusable"


def test_replies_of_models_with_other_tags() -> None:
    assert response_text("[THINK]2 + 2[/THINK]4", MISTRAL, "here") == "<think>2 + 2</think>4"
    assert response_text({"content": "2 + 2[/THINK]4"}, MISTRAL, "here") == "<think>2 + 2</think>4"
    assert response_text({"content": [THOUGHT, ANSWER]}, MISTRAL, "here") == WRITTEN
    assert response_text("2 + 2</think>4", ThinkingTags.of("none"), "here") == "2 + 2</think>4"
