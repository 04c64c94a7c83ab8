"""The interface between the trainer and an objective, with GRPO's credit as its default (paper, section 2.1).

    decide(rewards of a group)      → which groups and rollouts are trained on
    credit(rewards of a minibatch)  → an advantage and a token weight for each sequence
    loss(one micro-batch)           → a scalar to minimise, and the objective's own statistics

Invariants: credit is pure and float64; deviations are the population's. As a group's mean includes the rollout itself,
the expected gradient is (n-1)/n of the mean reward's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
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
from training.objectives.presets import Diversity, GroupCreditSettings, LossAggregation, Normalisation
from training.rewards import COMPONENTS, Reward
from training.rollouts.rollout_scheduler import GroupDecision

S = TypeVar("S", bound=ObjectiveSettings)

STD_FLOOR = 1e-6
"""Min divisor of advantages, in reward."""

REWARD_TOLERANCE = 1e-9
"""Max difference of equal rewards, from rounding."""

NONE_CORRECT = "none_correct"


def filter_group(rewards: Sequence[Reward], diversity: Diversity, min_judged: int = 2) -> GroupDecision:
    """Keep groups of enough judged rollouts that differ."""
    excluded = tuple(reward.excluded_by for reward in rewards)
    judged = [reward for reward in rewards if not reward.excluded]
    if len(judged) < min_judged:
        return GroupDecision("too_few_judged", excluded)
    correct, totals = sum(reward.correct for reward in judged), [reward.total for reward in judged]
    one_verdict = "all_correct" if correct == len(judged) else NONE_CORRECT if correct == 0 else None
    is_same = max(totals) - min(totals) <= REWARD_TOLERANCE
    reason = one_verdict or ("same_reward" if is_same else None)
    if diversity == "reward" and not is_same:
        reason = None
    return GroupDecision(None if diversity == "none" else reason, excluded)


def decide_group(rewards: Sequence[Reward], settings: GroupCreditSettings) -> GroupDecision:
    """Apply the preset's `filter_group`."""
    return filter_group(rewards, settings.variant.group_filter)


def group_credit(sequences: CreditInputs, settings: GroupCreditSettings, centred: Tensor | None = None) -> GroupCredit:
    """Return the minibatch's credit; ``centred`` [sequences] gains replace rewards."""
    variant, lengths = settings.variant, sequences.lengths
    normalisation = variant.advantage_normalisation
    if centred is not None:
        gains = advantages(centred[:, None], sequences.groups, normalisation, is_centred=True)
    else:
        names = COMPONENTS if normalisation == "components" else ("total",)
        rewards = [[float(getattr(reward, name)) for name in names] for reward in sequences.rewards]
        values = torch.tensor(rewards, dtype=torch.float64).reshape(-1, len(names))
        gains = advantages(values, sequences.groups, normalisation)
    if variant.mask_truncated:
        lengths = torch.where(torch.tensor(sequences.truncated), 0, lengths)
    weights = token_weights(lengths, sequences.groups, variant.loss_aggregation, sequences.max_tokens)
    return GroupCredit(gains, weights)


def advantages(rewards: Tensor, groups: Tensor, normalisation: Normalisation, *, is_centred: bool = False) -> Tensor:
    """Return [sequences] normalised advantages of [sequences, components] rewards.

    With A = reward - mean of the group: ``minibatch``, (A - mean) / deviation over the minibatch (paper, section 2.1);
    ``group``, A / deviation of its group; ``mean``, A / mean of its group (MaxRL, arXiv 2602.02710); ``none``, A;
    ``components``, the sum of each component's A / its deviation in the group, then as ``minibatch`` (GDPO, arXiv
    2601.05242). With ``is_centred``, no mean is subtracted.
    """
    means = group_means(rewards, groups)
    gains = rewards if is_centred else rewards - means
    if normalisation in ("group", "components"):
        gains = gains / group_means((rewards - means).square(), groups).sqrt().clamp(min=STD_FLOOR)
    if normalisation == "mean":
        gains = gains / means.clamp(min=STD_FLOOR)
    total: Tensor = gains.sum(1)
    if normalisation in ("minibatch", "components"):
        middle = 0.0 if is_centred else total.mean()
        total = (total - middle) / total.std(correction=0).clamp(min=STD_FLOOR)
    return total


def group_means(values: Tensor, groups: Tensor) -> Tensor:
    """Return [sequences, …] the means over each sequence's group."""
    _, index, count = torch.unique(groups, return_inverse=True, return_counts=True)
    sums = torch.zeros(len(count), *values.shape[1:], dtype=values.dtype).index_add_(0, index, values)
    means: Tensor = (sums / count.reshape(-1, *[1] * (values.ndim - 1)))[index]
    return means


def token_weights(lengths: Tensor, groups: Tensor, scale: LossAggregation, constant: int | None = None) -> Tensor:
    """Return [sequences] float64 weights per token; all but ``constant`` add up to 1.

    ``group``: 1 / (tokens of the group · groups), as in the paper; ``batch``: 1 / tokens of the minibatch;
    ``sequence``: 1 / (tokens of the sequence · sequences); ``constant``: 1 / (constant · sequences).
    """
    tokens = lengths.to(torch.float64)
    if scale == "constant":
        if constant is None:
            raise ValueError("loss_aggregation = constant needs a constant; give the max tokens")
        weights = torch.full_like(tokens, 1 / (constant * len(tokens)))
    elif scale == "batch":
        weights = (1 / tokens.sum()).expand(len(tokens))
    elif scale == "sequence":
        weights = 1 / (tokens * (tokens > 0).sum())
    else:
        _, index = torch.unique(groups, return_inverse=True)
        sums = torch.zeros(int(index.max()) + 1, dtype=torch.float64).index_add_(0, index, tokens)
        weights = (1 / (sums * (sums > 0).sum()))[index]
    return torch.where(tokens > 0, weights, 0.0)


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
    """If needed, a step first scores its minibatch without gradient."""

    @property
    def kind(self) -> str:
        kind: str = self.settings.model_fields["kind"].default
        return kind


AnyObjective = Objective[Any]
