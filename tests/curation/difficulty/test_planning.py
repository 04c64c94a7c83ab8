"""Plans: scaled means, intervals that hold the truth, and what early stopping skips."""

from __future__ import annotations

import json
import random

import pytest

from curation.difficulty.planning import CostRates, ForeseenSampling, PilotProblem, plan_stage, read_plan


def test_means_are_scaled_and_turned_into_hours_and_money() -> None:
    pilot = [PilotProblem(8, 800), PilotProblem(16, 3200)]
    plan = plan_stage("stage1", "m@1", 1000, 16, pilot, CostRates(tokens_per_s=100.0, devices=2, price_out=3.0))
    assert plan.expected.attempts.mean == 12_000
    assert plan.expected.tokens.mean == 2_000_000
    assert plan.expected.hours is not None
    assert plan.expected.hours.mean == pytest.approx(2_000_000 / 100 / 3600 * 2)
    assert plan.expected.price is not None
    assert plan.expected.price.mean == pytest.approx(6.0)
    assert plan.without_early_stopping.attempts.mean == plan.without_early_stopping.attempts.low == 16_000
    assert plan.without_early_stopping.tokens.mean == (16 * 100 + 16 * 200) / 2 * 1000
    assert read_plan(json.loads(json.dumps(plan.row()))) == plan


def test_the_prompt_of_each_attempt_is_paid_for() -> None:
    rates = CostRates(price_out=3.0, price_in=1.0, prompt_tokens=50.0)
    plan = plan_stage("stage1", "m@1", 1000, 16, [PilotProblem(8, 800), PilotProblem(16, 3200)], rates)
    assert plan.expected.price is not None
    assert plan.expected.price.mean == pytest.approx(6.0 + 12_000 * 50 / 1e6)
    assert plan.without_early_stopping.price is not None
    assert plan.without_early_stopping.price.mean == pytest.approx(7.2 + 16_000 * 50 / 1e6)
    assert read_plan(json.loads(json.dumps(plan.row()))).prompt_tokens == 50.0


def test_without_a_speed_or_a_price_none_is_made_up() -> None:
    plan = plan_stage("stage1", "m@1", 10, 16, [PilotProblem(16, 0)], CostRates())
    assert plan.expected.hours is None
    assert plan.expected.price is None
    assert plan.expected.attempts.low == plan.expected.attempts.high == 160


def test_what_is_foreseen_of_each_problem_scales_the_pilot_and_makes_the_plan_surer() -> None:
    draw = random.Random(5)
    expected = [draw.choice((2.0, 12.0)) for _ in range(400)]
    took = [round(1.5 * one + draw.uniform(-1, 1)) for one in expected]  # the model is too low by a third
    known = [PilotProblem(one, 100 * one) for one in took[:40]]
    foreseen = ForeseenSampling(40, tuple(known), tuple(expected[:40]), sum(expected[40:]), "the model is used")
    plan = plan_stage("s", "m@1", 400, 32, known, CostRates(price_out=1.0), foreseen=foreseen)
    plain = plan_stage("s", "m@1", 400, 32, known, CostRates()).expected.attempts
    attempts = plan.expected.attempts
    assert attempts.low < sum(took) < attempts.high
    assert attempts.high - attempts.low < 0.5 * (plain.high - plain.low)
    assert plan.expected.tokens.mean == pytest.approx(100 * attempts.mean)
    assert plan.without_early_stopping.attempts.mean == 400 * 32
    assert read_plan(json.loads(json.dumps(plan.row()))) == plan


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    draw = random.Random(3)
    held = 0
    for seed in range(100):
        pilot = [PilotProblem(draw.randint(9, 16), 0) for _ in range(64)]
        found = plan_stage("s", "m@1", 1, 16, pilot, CostRates(), seed).expected.attempts
        held += found.low <= 12.5 <= found.high
    assert 88 <= held <= 100
