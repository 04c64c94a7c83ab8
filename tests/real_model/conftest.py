"""The real model's folder, for tests that need it; they skip where it cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real_model.smollm import missing, smollm_folder


@pytest.fixture(scope="session")
def smollm() -> Path:
    """Return the folder of SmolLM2-135M-Instruct."""
    if reason := missing():
        pytest.skip(reason)
    return smollm_folder()
