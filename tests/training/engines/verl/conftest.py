"""Which environment of verl's tests take."""

from __future__ import annotations

import os

import pytest

from training.engines.verl.environment import VARIABLE


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the variable back as it was; a test that has an interpreter of its own sets it."""
    monkeypatch.setenv(VARIABLE, os.environ.get(VARIABLE, ""))
