"""The trainer's settings: described, marked where the paper is silent, and refused where they cannot work."""

from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from curation.config.base import Settings
from training.config import CollectorSettings, OptimSettings, PackingSettings, RewardSettings
from training.objectives.grpo import GrpoSettings

ALL = (CollectorSettings, GrpoSettings, OptimSettings, PackingSettings, RewardSettings)


@pytest.mark.parametrize("kind", ALL)
def test_every_field_is_described_and_every_number_has_a_source(kind: type[Settings]) -> None:
    for name, field in kind.model_fields.items():
        assert field.description, name
        if isinstance(field.default, int | float) and not isinstance(field.default, bool):
            assert re.search(r"in the paper|the paper\'s", field.description, re.IGNORECASE), name
    assert kind().digest() == kind().digest()


def test_the_rate_warms_up_and_stays() -> None:
    settings = OptimSettings(learning_rate=1.0, warmup_steps=4)
    assert [settings.learning_rate_at(step) for step in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    assert OptimSettings(learning_rate=1.0, warmup_steps=0).learning_rate_at(0) == 1.0


def test_a_penalty_longer_than_the_length_is_refused() -> None:
    with pytest.raises(ValidationError, match="length_cache = 200 is more than max_length = 100"):
        RewardSettings(max_length=100, length_cache=200)


def test_defaults_that_follow_from_other_fields() -> None:
    sizes = CollectorSettings(group_size=8, n_async=32, n_batch=16)
    assert (sizes.minibatch_size, sizes.max_outstanding) == (16, 32 + 32 + 32)
