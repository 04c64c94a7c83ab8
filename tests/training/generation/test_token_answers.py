"""vLLM's answers in tokens: what is read of them, what is none, and how many slots decode."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from training.generation.endpoint_generators import RequestMeter, read_answer

TOP = [{"token_id": 7, "logprob": -0.5, "rank": 1}]
CHOICE: dict[str, Any] = {
    "index": 0,
    "finish_reason": "stop",
    "stop_reason": None,
    "token_ids": [7, 8],
    "routed_experts": None,
    "weight_versions": [{"version": "run-3", "start": 0, "end": 1}, {"version": "run-4", "start": 1, "end": 2}],
    "logprobs": {
        "content": [
            {"token_id": 7, "logprob": -0.5, "rank": 1, "top_logprobs": TOP},
            {"token_id": 8, "logprob": 0, "rank": None, "top_logprobs": []},
        ]
    },
}
"""As vLLM 0.32 writes one."""


def body(**changes: Any) -> bytes:
    return json.dumps({"request_id": "r", "choices": [{**CHOICE, **changes}]}).encode()


def test_tokens_log_probabilities_and_whose_weights_made_them() -> None:
    answer = read_answer(body())
    assert answer == ((7, 8), (-0.5, 0.0), [("run-3", 1), ("run-4", 1)], "stop")
    assert read_answer(body(token_ids=None, logprobs=None, weight_versions=[], finish_reason="abort"))[0] == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"choices": []}',
        b'{"error": {"message": "not now"}}',
        body(weight_versions=None),
        body(logprobs={"content": [{"token_id": 7}]}),
        body(logprobs={"content": [{"token_id": 7, "logprob": float("nan")}]}),
    ],
)
def test_what_holds_no_response_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whoever asks tells the answer itself
        read_answer(content)


def test_requests_count_while_they_decode(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(sys.modules[RequestMeter.__module__], "time", SimpleNamespace(perf_counter=lambda: now))
    meter = RequestMeter(slots=2)
    for _ in range(3):  # the third waits for a slot
        meter.change(running=1)
    now = 10.0
    assert meter.change() == 20.0
    meter.change(paused=0.5)  # one of two servers takes new weights
    now = 14.0
    assert meter.change() == 24.0
    meter.change(paused=0.5)
    now = 15.0
    assert meter.change() == 24.0
    meter.change(paused=-0.5)
    meter.change(paused=-0.5)
    meter.change(running=-1)
    meter.change(running=-1)
    now = 25.0
    assert meter.change() == 34.0
