"""Answers of the three interfaces of servers, read alike."""

from __future__ import annotations

from typing import Any

import pytest

from curation.policies.completions import choice_logprobs, choice_text, choice_token_ids, choice_weight_labels

CHAT: dict[str, Any] = {
    "message": {"content": "4", "reasoning_content": "2 + 2"},
    "token_ids": [7, 8],
    "logprobs": {"content": [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": 0}]},
}
COMPLETIONS: dict[str, Any] = {"text": "4", "token_ids": [7, 8], "logprobs": {"token_logprobs": [-0.5, 0]}}
TOKENS: dict[str, Any] = {
    "token_ids": [7, 8],
    "logprobs": {"content": [{"token_id": 7, "logprob": -0.5}, {"token_id": 8, "logprob": 0.0}]},
    "weight_versions": [{"version": "run-3", "start": 0, "end": 1}, {"version": "run-4", "start": 1, "end": 2}],
}


@pytest.mark.parametrize("choice", [CHAT, COMPLETIONS, TOKENS])
def test_tokens_and_log_probabilities_are_read_alike(choice: dict[str, Any]) -> None:
    assert choice_token_ids(choice) == (7, 8)
    assert choice_logprobs(choice) == (-0.5, 0.0)


def test_texts_and_thoughts() -> None:
    assert choice_text(COMPLETIONS) == "4"
    assert choice_text(CHAT) == "<think>\n2 + 2\n</think>\n4"
    assert choice_text({"message": {"content": None}}) == ""


def test_what_a_server_does_not_give_is_none() -> None:
    assert choice_token_ids({"text": ""}) is None
    assert choice_token_ids({"text": "", "token_ids": []}) == ()
    assert choice_logprobs({"text": "", "logprobs": None}) is None
    assert choice_logprobs({"logprobs": {"content": []}}) == ()


def test_each_token_knows_its_weights() -> None:
    assert choice_weight_labels(TOKENS) == ["run-3", "run-4"]
    with pytest.raises(LookupError):
        choice_weight_labels(CHAT)
