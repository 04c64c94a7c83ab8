"""The interface between the trainer and an objective.

    decide(rewards of a group)      → which groups and rollouts are trained on
    credit(rewards of a minibatch)  → an advantage and a token weight for each sequence
    loss(one micro-batch)           → a scalar to minimise, and the objective's own statistics

`decide` and `credit` default to GRPO's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from torch import Tensor

from training.config import ObjectiveSettings
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
from training.rewards import Reward
from training.rollouts.rollout_scheduler import GroupDecision

S = TypeVar("S", bound=ObjectiveSettings)


@dataclass(frozen=True, slots=True)
class Objective(Generic[S]):
    """An objective's settings, and pure functions of them. `group_credit` and `decide_group` require
    `GroupCreditSettings`.
    """

    settings: type[S]
    loss: Callable[[ObjectiveInputs, S], tuple[Tensor, Mapping[str, Statistic]]]
    credit: Callable[[CreditInputs, S], GroupCredit] = group_credit  # type: ignore[assignment]
    decide: Callable[[Sequence[Reward], S], GroupDecision] = decide_group  # type: ignore[assignment]
    needs: Callable[[S], ObjectiveNeeds] = lambda _: ObjectiveNeeds()
    """Needs besides the policy's and the generator's log-probabilities."""
    second_pass: Callable[[ScoredGroups, S], GroupWeights] | None = None
    """If set, and needed, each step first scores its minibatch without gradient."""

    @property
    def kind(self) -> str:
        """Return its `kind` in a recipe."""
        kind: str = self.settings.model_fields["kind"].default
        return kind


AnyObjective = Objective[Any]
