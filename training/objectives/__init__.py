"""Objectives, one file each: what a minibatch is worth and how its loss is computed.

`training.objectives.registry` names them; `objective.kind = "my_loss.py:MyLoss"` names an `Objective` of your own.
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
