"""Objectives: what a minibatch is worth and how its loss is computed, one file each.

A file of your own with settings and a loss is named in a recipe as `objective.kind = "my_loss.py:MyLoss"`; `MyLoss` is
an `Objective`. `training.objectives.registry` names the ready ones.
"""

from training.objectives.base import CreditInputs, GroupCredit, ObjectiveInputs, Statistic
from training.objectives.objective import Objective
from training.objectives.presets import GroupCreditSettings
from training.objectives.step_statistics import counted, max_of, mean_of, sum_of

__all__ = [
    "CreditInputs",
    "GroupCredit",
    "GroupCreditSettings",
    "Objective",
    "ObjectiveInputs",
    "Statistic",
    "counted",
    "max_of",
    "mean_of",
    "sum_of",
]
