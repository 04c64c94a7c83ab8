"""The error of the soft value's consistency: AGRO (arXiv 2503.19612), SPO (2503.05453) and DRO (2405.19107).

    l_i = sum_t (log pi(y_t) - log ref(y_t))
    g_i = r_i - V - tau l_i
    L_i = g_i^2 / 2                                                        AGRO, DRO
        = - [ t log e^Q + (1 - t) log(1 - e^Q) ]                           SPO
          with Q = (V - c) / tau + l_i, t = e^((r_i - c) / tau), and c the max reward

The best policy for E r - tau KL(policy | reference) has V = tau log Z and all g = 0 for any sampling policy, so no
importance weights are needed. V is

    group      the group's mean of r - tau l (AGRO); E L is then (n-1)/n of half the variance
    prior      tau log((1 - p) e^(wrong / tau) + p e^(right / tau)) = tau log E_ref e^(r / tau) from the reference's
               pass rate p (SPO's Q0), estimated as (correct + 1/2) / (judged + 1)
    learned    a number per problem (DRO, without its network), first the prior or the first group's mean of
               r - tau l; it moves towards each later group's

The prior's rewards assume the right format and language, without a length penalty. SPO's loss bounds Q by -`MARGIN`.
A token weight is its whole sequence's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from curation.records import ConfigError
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
from training.objectives.credit import Objective, filter_group, group_means
from training.objectives.step_statistics import counted, mean_of
from training.rewards import CORRECTNESS, FORMAT, Reward
from training.rollouts.rollout_scheduler import GroupDecision

MARGIN = 0.05
"""Min distance of Q from 0, where the cross-entropy's slope is unbounded."""

CEILING = 1.1
"""c: the paper's rewards for format, correctness and language; larger ones are capped."""

VALUE_RATE = 0.3
"""Share of the distance to its group's value that a `learned` value moves per step."""


class SoftSettings(ObjectiveSettings):
    """The error of the soft value's consistency."""

    kind: Literal["soft"] = "soft"
    """`soft`: no importance weights."""
    tau: float = Field(0.1, gt=0)
    """Temperature: cost in reward of a nat of distance to the reference."""
    value: Literal["group", "prior", "learned"] = "group"
    """V: the group's mean, the reference's pass rate, or a learned number per problem."""


def soft_decision(rewards: Sequence[Reward], settings: SoftSettings) -> GroupDecision:
    """Keep groups of two judged rollouts, or one with `prior`."""
    return filter_group(rewards, "none", 1 if settings.value == "prior" else 2)


def soft_credit(sequences: CreditInputs, settings: SoftSettings) -> GroupCredit:
    """Return total rewards, less V with `prior`, and equal weights for sequences with tokens."""
    totals = torch.tensor([reward.total for reward in sequences.rewards], dtype=torch.float64)
    if settings.value == "prior":
        totals -= torch.tensor(sequences.values, dtype=torch.float64)
    has_tokens = (sequences.lengths > 0).to(torch.float64)
    return GroupCredit(totals, has_tokens / has_tokens.sum().clamp(min=1))


def soft_advantages(scored: ScoredGroups, settings: SoftSettings) -> GroupWeights:
    """Return r - V, and for `learned` each group's mean of r - tau l."""
    totals = scored.advantages.to(torch.float64)
    if settings.value == "prior":
        return GroupWeights(totals)
    values = means = group_means(totals - settings.tau * scored.scores.to(torch.float64), scored.groups)
    if settings.value == "group":
        return GroupWeights(totals - means)
    if scored.values is not None:
        values = torch.where(scored.values.isnan(), means, scored.values)
    return GroupWeights(totals - values, estimates=dict(zip(scored.groups.tolist(), means.tolist(), strict=True)))


def soft_loss(inputs: ObjectiveInputs, settings: SoftSettings) -> tuple[Tensor, dict[str, Statistic]]:
    """Return a micro-batch's loss (0-d), and the mean of |r - V - tau l|."""
    if inputs.reference_logprobs is None:
        raise ValueError("objective soft needs the reference policy's log-probabilities")
    counts = counted(inputs)
    excess = torch.where(counts, inputs.logprobs - inputs.reference_logprobs, 0.0)
    errors = inputs.advantages.to(excess.dtype) - settings.tau * inputs.per_sequence(excess)
    own = {"soft_error": mean_of(errors.abs(), inputs.token_weights > 0)}
    if settings.value != "prior":
        losses = 0.5 * errors.square()
    elif inputs.rewards is None:
        raise ValueError("objective soft with value = prior needs the rewards")
    else:  # the cross-entropy between e^((r - c) / tau) and e^Q
        shifted = (inputs.rewards.to(excess.dtype) - CEILING).clamp(max=0) / settings.tau
        q = shifted - errors / settings.tau
        bounded = q.clamp(max=-MARGIN)
        falling = q - (q - bounded).detach()  # keeps a gradient at the bound
        losses = -(shifted.exp() * bounded + (1 - shifted.exp()) * torch.log(-torch.expm1(falling)))
    return (inputs.token_weights.to(excess.dtype) * losses).sum(), own


def prior_value(correct: int, judged: int, tau: float, rewards: RewardSettings) -> float:
    """Return V, in reward, of a problem by the reference's attempts.

    Example: with 0.1 for the format, 0.9 for a correct answer, tau 1 and 1 of 2: 0.1 + log((1 + e^0.9) / 2) = 0.648.
    """
    rate = (correct + 0.5) / (judged + 1)
    wrong, gain = FORMAT + rewards.language, CORRECTNESS / tau
    return wrong + CORRECTNESS + tau * math.log(rate + (1 - rate) * math.exp(-gain))


def soft_values(
    settings: SoftSettings, tasks: Sequence[Any], rewards: RewardSettings, reference: str
) -> dict[str, float]:
    """Return the prior values of measured tasks, none for `group`; raise ConfigError for another ``reference``."""
    if settings.value == "group":
        return {}
    for task in tasks if settings.value == "prior" else ():
        if not task.judged or task.policy is None:
            raise ConfigError(
                f"objective.value = prior reads pass rates, and problem {task.id} has none; train on curated sets, or "
                "take `group` or `learned`"
            )
        if task.policy.rpartition("@")[2] != reference.rpartition("@")[2]:
            raise ConfigError(
                f"objective.value = prior needs pass rates of the reference {reference}, and problem {task.id} was "
                f"measured with {task.policy}; name that model in `reference`, or take `group` or `learned`"
            )
    return {task.id: prior_value(task.correct, task.judged, settings.tau, rewards) for task in tasks if task.judged}


def learn_values(values: dict[str, float], estimates: Iterable[tuple[str, float]]) -> None:
    """Move values by `VALUE_RATE` towards estimates; a first estimate becomes the value."""
    for problem, estimate in estimates:
        value = values.get(problem, estimate)
        values[problem] = value + VALUE_RATE * (estimate - value)


SOFT = Objective(
    SoftSettings,
    soft_loss,
    soft_credit,
    soft_decision,
    lambda settings: ObjectiveNeeds(
        uses_reference=True, generator_logprobs=False, second_pass=settings.value != "prior"
    ),
    second_pass=soft_advantages,
)
