"""Arms, and what is said of them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from curation.config.base import to_plain
from training.evaluation.ablations import Ablation, TrainedArm, ablation_lines, compare_arms

TABLE = {
    "name": "two-axes",
    "recipe": "train.toml",
    "set": ["steps=3"],
    "seeds": [1, 2, 3],
    "benches": ["demo"],
    "axes": [
        {"name": "a", "values": [{"name": "one"}, {"name": "two", "set": ["x=2"], "recipe": "other.toml"}]},
        {"name": "b", "values": [{"name": "low", "set": ["x=0"]}, {"name": "high", "set": ["y=1"]}]},
    ],
}


def test_arms_are_all_combinations_the_base_first() -> None:
    arms = Ablation.model_validate(to_plain(TABLE)).arms()
    assert [arm.name for arm in arms] == ["one-low", "one-high", "two-low", "two-high"]
    assert arms[2].changes(["steps=3"], 7) == ["steps=3", "x=2", "x=0", "seed=7"]
    assert [arm.recipe("train.toml") for arm in arms] == ["train.toml", "train.toml", "other.toml", "other.toml"]


def trained(*rates: float) -> TrainedArm:
    return TrainedArm({"demo": {f"p{n}": rate for n, rate in enumerate(rates)}}, 3, 1000.0, 0.25)


def test_an_arm_may_start_from_another_of_its_axis() -> None:
    start = {"name": "start", "values": [{"name": "rl"}, {"name": "sft"}, {"name": "both", "after": "sft"}]}
    clip = {"name": "clip", "values": [{"name": "low"}, {"name": "high"}]}
    table = {"name": "x", "recipe": "r.toml", "benches": ["demo"]}
    arms = Ablation.model_validate(to_plain({**table, "axes": [start, clip]})).arms()
    assert {arm.name: arm.after for arm in arms if arm.after} == {"both-low": "sft-low", "both-high": "sft-high"}
    later = {"name": "start", "values": [{"name": "both", "after": "sft"}, {"name": "sft"}]}
    with pytest.raises(ValidationError, match=r"after = sft is no earlier value of it \(none\)"):
        Ablation.model_validate(to_plain({**table, "axes": [later]}))
    with pytest.raises(ValidationError, match="`after` stands in two axes"):
        Ablation.model_validate(to_plain({**table, "axes": [start, {**start, "name": "again"}]}))


def test_a_verdict_stands_only_where_the_interval_excludes_0() -> None:
    base = {seed: trained(*[0.5, 0.4, 0.6, 0.5] * 5) for seed in (1, 2, 3)}
    better = {seed: trained(*[0.7 + 0.01 * seed, 0.6, 0.8, 0.7] * 5) for seed in (1, 2, 3)}
    mixed = {seed: trained(*[0.5 + 0.1 * (seed - 2), 0.4, 0.6, 0.6] * 5) for seed in (1, 2, 3)}
    results = compare_arms("base", {"base": base, "better": better, "mixed": mixed})
    assert [(result.arm, result.verdict) for result in results] == [
        ("base", ""),
        ("better", "better"),
        ("mixed", "no difference shown"),
    ]
    assert results[1].difference is not None
    assert results[1].difference.mean == pytest.approx((0.22 + 0.2 * 3) / 4)
    assert results[0].pass_1.mean == pytest.approx(0.5)
    ablation = Ablation.model_validate(to_plain(TABLE))
    lines = "\n".join(ablation_lines(ablation, results))
    assert "| better | 3 |" in lines
    assert "no difference shown" in lines
