"""The soft value's consistency as a loss: AGRO (arXiv 2503.19612), of one family with SPO (2503.05453) and DRO.

    l_i = sum_t (log pi(y_t) - log ref(y_t))
    V   = mean over the group of (r - tau l)
    L_i = (r_i - V - tau l_i)^2 / 2

The best policy for E r - tau KL(policy | reference) is ref · e^(r / tau) / Z. It has L = 0 for every rollout, whoever
drew it: there are no importance weights, and any generator whose support is wide enough will do. The mean of L over a
group of n is in expectation (n-1)/n of half the variance of r - tau l.

V needs the present l of the whole group, so every step has a first pass without gradient (`soft_advantages`).

Invariants: those of `training.objectives.base`; here a token weight is its whole sequence's. Not here: V from a column
of pass rates or learned, and the cross-entropy form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from training.config import ObjectiveSettings
from training.objectives.advantages import filter_group
from training.objectives.base import CreditInputs, GroupCredit, Objective, ObjectiveInputs, ObjectiveNeeds, Statistic
from training.objectives.step_statistics import counted, mean_of
from training.rewards import Reward
from training.rollouts.rollout_scheduler import GroupDecision


class SoftSettings(ObjectiveSettings):
    """The squared error of the soft value's consistency; its value is the group's."""

    kind: Literal["soft"] = Field(
        "soft", description="`soft`: rewards against a reference, without importance weights. Not in the paper."
    )
    tau: float = Field(
        0.1,
        gt=0,
        description="Temperature: what a nat of distance to the reference costs, in reward. Not in the paper.",
    )
    reference: str | None = Field(
        None,
        description="Folder of the reference model, relative to the recipe's, or `embedded`; where absent, the model "
        "that the run starts from. Not in the paper.",
    )


def soft_decision(rewards: Sequence[Reward], _: SoftSettings) -> GroupDecision:
    """Return whether a group is trained on: where two rollouts could be judged; equal rewards draw to the reference."""
    return filter_group(rewards, "none")


def soft_credit(sequences: CreditInputs, _: SoftSettings) -> GroupCredit:
    """Return total rewards, of which `soft_advantages` takes V, and the same weight for each sequence with tokens."""
    totals = torch.tensor([reward.total for reward in sequences.rewards], dtype=torch.float64)
    has_tokens = (sequences.lengths > 0).to(torch.float64)
    return GroupCredit(totals, has_tokens / has_tokens.sum().clamp(min=1))


def soft_advantages(rewards: Tensor, log_ratios: Tensor, groups: Tensor, settings: SoftSettings) -> Tensor:
    """Return [sequences] float64 r - V, with V the mean of r - tau l over the group.

    Args:
        rewards: [sequences] total rewards.
        log_ratios: [sequences] l under the present policy.
        groups: [sequences] a number per group.
    """
    totals = rewards.to(torch.float64)
    rest = totals - settings.tau * log_ratios.to(torch.float64)
    _, index, count = torch.unique(groups, return_inverse=True, return_counts=True)
    sums = torch.zeros(len(count), dtype=torch.float64).index_add_(0, index, rest)
    values: Tensor = (sums / count)[index]
    return totals - values


def soft_loss(inputs: ObjectiveInputs, settings: SoftSettings) -> tuple[Tensor, dict[str, Statistic]]:
    """Return the loss of one micro-batch (to be minimised, 0-d), and the mean size of r - V - tau l.

    Raises:
        ValueError: there are no log-probabilities of a reference.
    """
    if inputs.reference_logprobs is None:
        raise ValueError("objective soft needs the reference policy's log-probabilities")
    counts = counted(inputs)
    excess = torch.where(counts, inputs.logprobs - inputs.reference_logprobs, 0.0)
    zeros = torch.zeros(len(inputs.advantages), dtype=excess.dtype, device=excess.device)
    log_ratios = zeros.index_add(0, inputs.sequence_index, excess)
    errors = inputs.advantages.to(excess.dtype) - settings.tau * log_ratios
    own = {"soft_error": mean_of(errors.abs(), inputs.token_weights > 0)}
    return (inputs.token_weights.to(excess.dtype) * 0.5 * errors.square()).sum(), own


def soft_needs(settings: SoftSettings) -> ObjectiveNeeds:
    """Return that a reference is needed."""
    return ObjectiveNeeds(uses_reference=True, reference_model=settings.reference, generator_logprobs=False)


SOFT = Objective(SoftSettings, soft_decision, soft_credit, soft_loss, soft_needs, soft_advantages)
