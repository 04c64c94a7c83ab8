"""The trainer's settings: what follows from other fields, and what is refused."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from training.config import OptimSettings, RewardSettings


def test_the_rate_warms_up_and_stays() -> None:
    settings = OptimSettings(learning_rate=1.0, warmup_steps=4)
    assert [settings.learning_rate_at(step) for step in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    assert OptimSettings(learning_rate=1.0, warmup_steps=0).learning_rate_at(0) == 1.0


def test_a_penalty_longer_than_the_length_is_refused() -> None:
    with pytest.raises(ValidationError, match="length_cache = 200 is more than max_length = 100"):
        RewardSettings(max_length=100, length_cache=200)
