"""From groups of judged attempts to the trainer's samples, and what a batch looks like in numbers.

Invariant: advantages and weights are made once for the whole minibatch, over all ranks' samples.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import torch

from training.config import ObjectiveSettings
from training.objectives.base import CreditInputs
from training.objectives.registry import objective_of
from training.objectives.step_statistics import over_steps
from training.optimisation.packing import TrainingSample
from training.optimisation.trainer import StepResult
from training.rollouts.rollout_scheduler import RolloutGroup
from training.rollouts.rollouts import Rollout


def build_samples(groups: Sequence[RolloutGroup[Rollout]], settings: ObjectiveSettings) -> list[TrainingSample]:
    """Return a minibatch's attempts with their advantages and weights, in their order."""
    made = [(group.number, rollout) for group in groups for _, rollout in group.rollouts]
    numbers = torch.tensor([number for number, _ in made])
    lengths = torch.tensor([rollout.tokens for _, rollout in made])
    rewarded = CreditInputs([rollout.reward for _, rollout in made], lengths, numbers)
    credit = objective_of(settings).credit(rewarded, settings)
    return [
        TrainingSample(one.completion.prompt_ids, one.completion.token_ids, one.completion.logprobs, gain, weight)
        for (_, one), gain, weight in zip(made, credit.advantages.tolist(), credit.token_weights.tolist(), strict=True)
    ]


def batch_metrics(groups: Sequence[RolloutGroup[Rollout]], version: int) -> dict[str, float]:
    """Return what a batch that policy version ``version`` trains on is like: rewards, lengths and ages.

    ``age`` is in versions, per token; ``advantage_std`` that of the group-centred rewards.
    """
    rollouts = [rollout for group in groups for _, rollout in group.rollouts]
    lengths = [rollout.tokens for rollout in rollouts]
    ages = [version - made for rollout in rollouts for made in rollout.completion.versions]
    centred = []
    for group in groups:
        totals = [rollout.reward.total for _, rollout in group.rollouts]
        mean = statistics.fmean(totals)
        centred += [total - mean for total in totals]
    names = ("format", "correctness", "length", "language", "total")
    rewards = {
        f"reward/{name}": statistics.fmean(rollout.reward.components()[name] for rollout in rollouts) for name in names
    }
    several = sum(len(set(rollout.completion.versions)) > 1 for rollout in rollouts)
    return {
        **rewards,
        "batch/attempts": float(len(rollouts)),
        "batch/pass_rate": statistics.fmean(rollout.reward.correct for rollout in rollouts),
        "batch/advantage_std": statistics.pstdev(centred),
        "length/trained_mean": statistics.fmean(lengths),
        "length/trained_max": float(max(lengths)),
        "age/token_mean": statistics.fmean(ages),
        "age/token_max": float(max(ages)),
        "age/several_versions_share": several / len(rollouts),
    }


def policy_metrics(figures: Sequence[StepResult]) -> dict[str, float]:
    """Return the optimiser steps of a batch: statistics by their own reductions, the sum of losses, the last rate."""
    statistics = over_steps([one.statistics for one in figures])
    return {
        "policy/loss": sum(one.loss for one in figures),
        "policy/gradient_norm": max(one.gradient_norm for one in figures),
        "policy/learning_rate": figures[-1].learning_rate,
        **{f"policy/{name}": value for name, value in statistics.items()},
    }


def format_rollouts(groups: Sequence[RolloutGroup[Rollout]], count: int) -> list[str]:
    """Return a few attempts as Markdown text: the first of as many groups."""
    texts = []
    for group in groups[:count]:
        ticket, one = group.rollouts[0]
        made, components = one.completion, one.reward.components()
        earned = ", ".join(f"{name} {value:.2f}" for name, value in components.items())
        head = f"problem {one.problem}, attempt {ticket.index}, versions {made.versions[0]} to {made.versions[-1]}"
        texts.append(f"**{head}**\n\n{earned}; {one.method}\n\n```text\n{made.text}\n```")
    return texts
