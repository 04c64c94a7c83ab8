"""Objectives, one file each.

A recipe chooses one from `training.objectives.registry`, or an `Objective` of its own file.
"""

from training.objectives.base import (
    CreditInputs,
    GroupCredit,
    GroupWeights,
    ObjectiveInputs,
    ObjectiveNeeds,
    ScoredGroups,
    Statistic,
)
from training.objectives.credit import Objective, group_means, token_weights
from training.objectives.presets import GroupCreditSettings
from training.objectives.step_statistics import counted, max_of, mean_of
from training.rollouts.rollout_scheduler import GroupDecision

__all__ = [
    "CreditInputs",
    "GroupCredit",
    "GroupCreditSettings",
    "GroupDecision",
    "GroupWeights",
    "Objective",
    "ObjectiveInputs",
    "ObjectiveNeeds",
    "ScoredGroups",
    "Statistic",
    "counted",
    "group_means",
    "max_of",
    "mean_of",
    "token_weights",
]
