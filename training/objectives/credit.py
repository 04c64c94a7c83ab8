"""Credit by comparison within a group: rewards centred on the group's mean, groups without diversity dropped.

    reward      the total reward minus the group's mean (paper, section 2.1)
    pass_at_k   the largest total reward among k rollouts; with rewards of two values, pass@k
    majority    the chance that a vote of k rollouts is right; wrong answers vote together where their texts are equal

The last two, and what they are exact for, are in `training.objectives.attempt_sets`. Shared by objectives that weigh a
rollout by how much better it was than its group's other rollouts; what a token weighs in the minibatch's loss is here
too, because it is made at the same moment.

A group's mean holds the rollout itself, so the expected gradient of `reward`, undivided, is (n-1)/n that of the mean
reward. Not here: how rewards are centred and scaled (`training.objectives.advantages`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from training.config import ObjectiveSettings
from training.objectives.advantages import (
    NO_CREDIT,
    REWARD_TOLERANCE,
    advantages,
    filter_group,
    scale_gains,
)
from training.objectives.attempt_sets import MAX_SUBSETS, best_of_k_credit, majority_credit
from training.objectives.base import CreditInputs, GroupCredit
from training.objectives.presets import LossAggregation, Variant, variant_of
from training.rewards import Reward
from training.rollouts.rollout_scheduler import GroupDecision

Credit = Literal["reward", "pass_at_k", "majority"]


class GroupCreditSettings(ObjectiveSettings):
    """How far the rollouts of a group teach."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    preset: str
    credit: Credit = Field(
        "reward",
        description="`reward`: a rollout's reward minus its group's mean (paper); `pass_at_k`, `majority`: its "
        "part in the best reward, or the vote, of `k` (arXiv 2503.19595, 2505.15201).",
    )
    k: int = Field(8, ge=1, description="Rollouts of `pass_at_k` and `majority`.")

    @model_validator(mode="before")
    @classmethod
    def _preset(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        name = values.get("preset", cls.model_fields["preset"].default)
        preset = cls.presets.get(name, {}) if isinstance(name, str) else {}
        return {key: value for key, value in preset.items() if key in cls.model_fields} | values

    @property
    def variant(self) -> Variant:
        """Return what the preset changes beside the settings."""
        return variant_of(self.presets[self.preset], vars(self))

    @model_validator(mode="after")
    def _has_meaning(self) -> Self:
        if self.variant.advantage_normalisation == "mean" and self.credit != "reward":
            raise ValueError(f"advantage_normalisation = mean has no meaning with credit = {self.credit}; change one")
        return self

    @property
    def min_judged(self) -> int:
        """Return how many judged rollouts a group needs: two to compare, or k."""
        return 2 if self.credit == "reward" else max(2, self.k)

    def unsuited(self, group_size: int, /) -> str | None:
        """Return why groups of this size do not suit the credit, and what to change."""
        if self.min_judged > group_size:
            return f"objective.k = {self.k} is more than collector.group_size = {group_size}; lower k or raise it"
        subsets = math.comb(group_size, self.k)
        if self.credit == "majority" and subsets > MAX_SUBSETS:
            return (
                f"objective.credit = majority goes over {subsets} subsets of k = {self.k} of collector.group_size = "
                f"{group_size} rollouts, more than {MAX_SUBSETS}; lower one of them"
            )
        return None


def decide_group(rewards: Sequence[Reward], settings: GroupCreditSettings) -> GroupDecision:
    """Return whether a group is trained on; see `filter_group`.

    With another credit than `reward`, groups are also dropped in which no rollout has any; a vote, which knows answers
    and not totals, takes those in which some rollout is correct and some is not.
    """
    group_filter = settings.variant.group_filter
    if settings.credit == "reward":
        return filter_group(rewards, group_filter, settings.min_judged)
    diversity = "correctness" if settings.credit == "majority" else group_filter
    decision = filter_group(rewards, diversity, settings.min_judged)
    if decision.drop_reason is not None or settings.credit == "majority":
        return decision
    gains = best_of_k_credit([reward.total for reward in rewards if not reward.excluded], settings.k)
    return replace(decision, drop_reason=NO_CREDIT) if abs(gains).max() <= REWARD_TOLERANCE else decision


def group_credit(sequences: CreditInputs, settings: GroupCreditSettings) -> GroupCredit:
    """Return the minibatch's normalised advantages and token weights."""
    variant = settings.variant
    normalisation = variant.advantage_normalisation
    if settings.credit == "reward":
        totals = torch.tensor([reward.total for reward in sequences.rewards], dtype=torch.float64)
        gains = advantages(totals, sequences.groups, normalisation=normalisation)
    else:
        gains = scale_gains(_gains_of_sets(sequences, settings), sequences.groups, normalisation)
    lengths = sequences.lengths
    if variant.mask_truncated:
        lengths = torch.where(torch.tensor(sequences.truncated), 0, lengths)
    weights = token_weights(lengths, sequences.groups, variant.loss_aggregation, sequences.max_tokens)
    return GroupCredit(gains, weights)


def _gains_of_sets(sequences: CreditInputs, settings: GroupCreditSettings) -> Tensor:
    """Return [sequences] what each adds to k rollouts of its group, float64."""
    gains = torch.zeros(len(sequences.rewards), dtype=torch.float64)
    for number in torch.unique(sequences.groups).tolist():
        places = (sequences.groups == number).nonzero().flatten()
        rewards = [sequences.rewards[place] for place in places.tolist()]
        if settings.credit == "pass_at_k":
            own = best_of_k_credit([reward.total for reward in rewards], settings.k)
        else:
            answers = [_one_line(sequences.answers[place]) for place in places.tolist()]
            own = majority_credit(answers, [reward.correct for reward in rewards], settings.k)
        gains[places] = torch.from_numpy(own)
    return gains


def _one_line(answer: str | None) -> str | None:
    return None if answer is None else " ".join(answer.split())


def token_weights(lengths: Tensor, groups: Tensor, scale: LossAggregation, constant: int | None = None) -> Tensor:
    """Return the weight of each of a sequence's tokens in a whole minibatch's loss; over all tokens they sum to 1, but
    with ``constant``.

    ``group``: 1 / (tokens of the group · groups), as printed; ``batch``: 1 / tokens of the minibatch;
    ``sequence``: 1 / (tokens of the sequence · sequences); ``constant``: 1 / (constant · sequences).

    Args:
        lengths: [sequences] trained tokens of each sequence of the minibatch, over all ranks.
        groups: [sequences] a number per group.
        scale: which of the four.
        constant: tokens by which token sums are divided with ``constant``.

    Returns:
        [sequences], float64; 0 for a sequence without tokens.
    """
    tokens = lengths.to(torch.float64)
    if scale == "constant":
        if constant is None:
            raise ValueError("loss_aggregation = constant needs a constant")
        per_token = torch.full_like(tokens, 1 / (constant * len(tokens)))
    elif scale == "batch":
        per_token = (1 / tokens.sum()).expand(len(tokens))
    elif scale == "sequence":
        per_token = 1 / (tokens * (tokens > 0).sum())
    else:
        _, index = torch.unique(groups, return_inverse=True)
        sums = torch.zeros(int(index.max()) + 1, dtype=torch.float64, device=tokens.device)
        sums.index_add_(0, index, tokens)
        per_token = (1 / (sums * (sums > 0).sum()))[index]
    return torch.where(tokens > 0, per_token, 0.0)
