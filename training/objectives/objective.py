"""The seam between the trainer and an objective.

    decide(rewards of a group)      → which groups and rollouts are trained on
    credit(rewards of a minibatch)  → an advantage and a token weight for each sequence
    loss(one micro-batch)           → a scalar to minimise, and the objective's own statistics

An objective needs its settings and a loss; without its own `decide` and `credit` it has those of GRPO. One that needs
what the present policy makes of whole groups has a `second_pass` before each step. A recipe names a ready objective by
its `kind` (`training.objectives.registry`), or one of the user's own as `objective.kind = "my_loss.py:MyLoss"`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from torch import Tensor

from training.config import ObjectiveSettings, RewardSettings
from training.objectives.base import (
    CreditInputs,
    GroupCredit,
    GroupWeights,
    ObjectiveInputs,
    ObjectiveNeeds,
    ScoredGroups,
    Statistic,
)
from training.objectives.credit import decide_group, group_credit
from training.objectives.soft_values import MeasuredProblem, ProblemValues
from training.rewards import Reward
from training.rollouts.rollout_scheduler import GroupDecision

S = TypeVar("S", bound=ObjectiveSettings)


def needs_nothing(_: ObjectiveSettings) -> ObjectiveNeeds:
    """Return the needs of an objective that reads the policy's and the generator's log-probabilities only."""
    return ObjectiveNeeds()


@dataclass(frozen=True, slots=True)
class Objective(Generic[S]):
    """An objective: its settings, and pure functions of them.

    The names of its statistics are its own; they appear in the metrics after ``policy/``. `group_credit` and
    `decide_group` need settings that are `GroupCreditSettings`.
    """

    settings: type[S]
    loss: Callable[[ObjectiveInputs, S], tuple[Tensor, Mapping[str, Statistic]]]
    credit: Callable[[CreditInputs, S], GroupCredit] = group_credit  # type: ignore[assignment]
    decide: Callable[[Sequence[Reward], S], GroupDecision] = decide_group  # type: ignore[assignment]
    needs: Callable[[S], ObjectiveNeeds] = needs_nothing
    second_pass: Callable[[ScoredGroups, S], GroupWeights] | None = None
    """If it is set, and needed, every step first scores its whole minibatch without gradient."""
    values: Callable[[S, Sequence[MeasuredProblem], RewardSettings, str], ProblemValues | None] | None = None
    """(settings, the run's problems, rewards, the reference as model@revision) → values of the problems, or None."""

    @property
    def kind(self) -> str:
        """Return the value of `kind` that chooses a ready objective in a recipe."""
        kind: str = self.settings.model_fields["kind"].default
        return kind


AnyObjective = Objective[Any]
