"""Plans: scaled means with their intervals, hours and prices by hand."""

from __future__ import annotations

import pytest

from curation.difficulty.planning import plan_stage

PILOT = [(8, 800), (16, 3200)]


def test_means_are_scaled_and_turned_into_hours_and_money() -> None:
    plan = plan_stage("stage1", "m@1", 1000, PILOT, tokens_per_s=100.0, devices=2, prices=(0.0, 3.0))
    assert plan.attempts.mean == 12_000
    assert plan.tokens.mean == 2_000_000
    assert plan.hours is not None
    assert plan.hours.mean == pytest.approx(2_000_000 / 100 / 3600 * 2)
    assert plan.price is not None
    assert plan.price.mean == pytest.approx(6.0)
    assert str(plan.attempts) == "12 k (8 k to 16 k)"
    with_prompts = plan_stage("s", "m@1", 1000, PILOT, prices=(1.0, 3.0), prompt_tokens=50.0)
    assert with_prompts.price is not None
    assert with_prompts.price.mean == pytest.approx(6.0 + 12_000 * 50 / 1e6)
