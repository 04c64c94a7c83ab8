"""Stored rollouts by ratio: which weigh nothing once the policy has left the reference, by hand and in a step."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from training.objectives.base import GroupWeights
from training.optimisation.packing import TrainingSample
from training.optimisation.second_pass import far_share, reweighed


def sample(tokens: int, max_distance: float | None) -> TrainingSample:
    return TrainingSample([1], [5] * tokens, None, 1.0, 0.25, max_distance=max_distance)


def test_a_stored_sample_weighs_nothing_where_its_ratio_is_too_far_either_way() -> None:
    made = [sample(4, 0.5), sample(4, 0.5), sample(4, 0.5), sample(2, 0.5), sample(4, None)]
    sums: Mapping[int, float] = {0: 1.9, 1: 2.1, 2: -2.1, 3: 1.9, 4: 50.0}  # half a nat for each of its tokens
    weighed = reweighed(made, sums, GroupWeights(torch.zeros(5, dtype=torch.float64)))
    assert [one.token_weight for one in weighed] == [0.25, 0.0, 0.0, 0.0, 0.25]
    share = far_share(weighed)
    assert (share.reduction, share.value, share.count) == ("mean", 0.75, 4.0)  # the last one was sampled
