"""Stored rollouts by ratio: which weigh nothing once the policy has left the reference, by hand and in a step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
import torch

from tests.training.optimisation.test_trainer import samples, solo
from training.objectives.base import GroupWeights
from training.objectives.soft import SoftSettings
from training.optimisation.packing import TrainingSample
from training.optimisation.second_pass import far_share, reweighed
from training.optimisation.trainer import Trainer

SOFT = SoftSettings(kind="soft")


def sample(tokens: int, max_distance: float | None) -> TrainingSample:
    return TrainingSample([1], [5] * tokens, None, 1.0, 0.25, max_distance=max_distance)


def test_a_stored_sample_weighs_nothing_where_its_ratio_is_too_far_either_way() -> None:
    made = [sample(4, 0.5), sample(4, 0.5), sample(4, 0.5), sample(2, 0.5), sample(4, None)]
    sums: Mapping[int, float] = {0: 1.9, 1: 2.1, 2: -2.1, 3: 1.9, 4: 50.0}  # half a nat for each of its tokens
    weighed = reweighed(made, sums, GroupWeights(torch.zeros(5, dtype=torch.float64)))
    assert [one.token_weight for one in weighed] == [0.25, 0.0, 0.0, 0.0, 0.25]
    share = far_share(weighed)
    assert (share.reduction, share.value, share.count) == ("mean", 0.75, 4.0)  # the last one was sampled


def test_of_no_stored_samples_there_is_no_share() -> None:
    share = far_share([sample(3, None)])
    assert math.isnan(share.value)
    assert share.count == 0


def moved(monkeypatch: pytest.MonkeyPatch, by: float) -> Trainer:
    """Return a trainer whose policy is so many nats from the reference, on every sequence."""
    trainer = solo(objective={"kind": "soft"}, stored={"runs": ("nowhere",), "max_distance": 0.01})
    monkeypatch.setitem(trainer._work, "sequence_sums", lambda *_: dict.fromkeys(range(8), by))
    return trainer


def test_a_step_learns_nothing_of_what_is_too_far(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = [
        replace(one, max_distance=0.01, group=place // 4, generator_logprobs=None)
        for place, one in enumerate(samples())
    ]
    near, _ = moved(monkeypatch, 0.0)._with_second_pass(stored, SOFT)
    assert all(one.token_weight > 0 for one in near)
    far, _ = moved(monkeypatch, 20.0)._with_second_pass(stored, SOFT)
    assert all(one.token_weight == 0 for one in far)
    mixed, _ = moved(monkeypatch, 20.0)._with_second_pass([*stored[:4], *samples()[4:]], SOFT)
    assert [one.token_weight > 0 for one in mixed] == [False] * 4 + [True] * 4
