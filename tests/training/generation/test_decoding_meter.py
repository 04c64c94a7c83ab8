"""Slots that decode: by requests under way, without what waits in a queue and without exchanges of weights."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from training.generation.endpoint_generators import RequestMeter


def test_requests_count_while_they_decode(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(sys.modules[RequestMeter.__module__], "time", SimpleNamespace(perf_counter=lambda: now))
    meter = RequestMeter(slots=2)
    for _ in range(3):  # the third waits for a slot
        meter.change(running=1)
    now = 10.0
    assert meter.change() == 20.0
    meter.change(held=0.5)  # one of two servers takes new weights
    now = 14.0
    assert meter.change() == 24.0
    meter.change(held=0.5)
    now = 15.0
    assert meter.change() == 24.0
    meter.change(held=-0.5)
    meter.change(held=-0.5)
    meter.change(running=-1)
    meter.change(running=-1)
    now = 25.0
    assert meter.change() == 34.0
