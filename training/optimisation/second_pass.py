"""Give samples the weights of an objective's second pass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from training.objectives.base import GroupWeights, ScoredGroups
from training.objectives.step_statistics import Measure
from training.optimisation.packing import TrainingSample


def scored_groups(samples: Sequence[TrainingSample], sums: Mapping[int, float]) -> ScoredGroups:
    """Return the second pass's input for samples with these sums."""
    values = [math.nan if one.value is None else one.value for one in samples]
    return ScoredGroups(
        torch.tensor([one.advantage for one in samples], dtype=torch.float64),
        torch.tensor([sums[place] for place in range(len(samples))], dtype=torch.float64),
        torch.tensor([one.group for one in samples]),
        torch.tensor(values, dtype=torch.float64),
    )


def reweighed(samples: Sequence[TrainingSample], sums: Mapping[int, float], made: GroupWeights) -> list[TrainingSample]:
    """Return the samples with new weights; those too far from the reference weigh nothing."""
    texts = [0.0] * len(samples) if made.answer_weights is None else made.answer_weights.tolist()
    far = [
        one.max_distance is not None and abs(sums[place]) > one.max_distance * len(one.response_ids)
        for place, one in enumerate(samples)
    ]
    return [
        replace(one, advantage=value, answer_weight=text, token_weight=0.0 if too_far else one.token_weight)
        for one, value, text, too_far in zip(samples, made.advantages.tolist(), texts, far, strict=True)
    ]


def far_share(samples: Sequence[TrainingSample]) -> Measure:
    """Return the share of stored samples that weigh nothing after the second pass, or NaN."""
    weighs = [one.token_weight > 0 for one in samples if one.max_distance is not None]
    share = weighs.count(False) / len(weighs) if weighs else math.nan
    return Measure("mean", share, float(len(weighs)))
