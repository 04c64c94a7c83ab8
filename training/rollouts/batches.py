"""Make training samples and metrics from groups of judged rollouts.

Invariant: advantages and weights are computed over the whole minibatch and all ranks.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch

from curation.records import PolicyError
from training.config import ObjectiveSettings
from training.evaluation.metrics import Timer
from training.objectives.base import CreditInputs
from training.objectives.registry import objective_of
from training.objectives.step_statistics import over_steps
from training.optimisation.packing import TrainingSample
from training.optimisation.trainer import StepResult
from training.rewards import COMPONENTS
from training.rollouts.impossible import MAX_IMPOSSIBLE_SHARE, impossible_positions, possible_mask
from training.rollouts.rollout_scheduler import RolloutBatch, RolloutGroup, RolloutLedger
from training.rollouts.rollouts import Rollout

TeacherPrompt = Callable[[str, tuple[int, ...]], tuple[int, ...] | None]
"""(problem, student's prompt) → the teacher's prompt, or None without a teacher."""


def student_prompt(_: str, prompt_ids: tuple[int, ...]) -> tuple[int, ...]:
    """Return the student's own prompt."""
    return prompt_ids


def build_samples(
    groups: Sequence[RolloutGroup[Rollout]],
    settings: ObjectiveSettings,
    version: int | None = None,
    max_distance: float | None = None,
    values: Mapping[str, float] = MappingProxyType({}),
    max_tokens: int | None = None,
    teacher_prompt: TeacherPrompt = student_prompt,
) -> list[TrainingSample]:
    """Return a sample for each rollout of a minibatch, in order.

    Args:
        version: of the weights, None after the first minibatch; rollouts of it alone are on-policy.
        max_distance: of stored rollouts.
        max_tokens: the run's limit of a rollout.
    """
    numbered = [(group.number, rollout) for group in groups for _, rollout in group.rollouts]
    rollouts = [rollout for _, rollout in numbered]
    own_values = [values.get(rollout.problem) for rollout in rollouts]
    masks = [possible_mask(rollout.completion.logprobs) for rollout in rollouts]
    credit_inputs = CreditInputs(
        [rollout.reward for rollout in rollouts],
        torch.tensor(
            [rollout.tokens if mask is None else sum(mask) for rollout, mask in zip(rollouts, masks, strict=True)]
        ),
        torch.tensor([number for number, _ in numbered]),
        [rollout.answer for rollout in rollouts],
        [rollout.completion.finish == "length" for rollout in rollouts],
        own_values,
        max_tokens,
        [bool(rollout.reference_ids) for rollout in rollouts],
    )
    credit = objective_of(settings).credit(credit_inputs, settings)
    completions = [rollout.completion for rollout in rollouts]
    advantages, weights = credit.advantages.tolist(), credit.token_weights.tolist()
    taught = [False] * len(rollouts) if credit.taught is None else credit.taught.tolist()
    return [
        TrainingSample(
            completion.prompt_ids,
            (*completion.token_ids, *rollout.reference_ids),
            completion.logprobs or None,
            advantage,
            weight,
            mask if mask is None else [*mask, *[True] * len(rollout.reference_ids)],
            on_policy=0 < len(completion.versions) == completion.versions.count(version),
            group=number,
            max_distance=None if completion.versions else max_distance,
            answer_tokens=len(rollout.reference_ids),
            reward=rollout.reward.total,
            value=value,
            teacher_prompt_ids=teacher_prompt(rollout.problem, tuple(completion.prompt_ids)) if is_taught else None,
        )
        for (number, rollout), completion, advantage, weight, mask, value, is_taught in zip(
            numbered, completions, advantages, weights, masks, own_values, taught, strict=True
        )
    ]


def impossible_tokens(groups: Sequence[RolloutGroup[Rollout]]) -> tuple[int, str]:
    """Return the number of impossible log-probabilities, and a sentence; raise PolicyError for too many."""
    rollouts = [rollout for group in groups for _, rollout in group.rollouts]
    tokens = sum(rollout.tokens for rollout in rollouts)
    impossible: list[tuple[float, str]] = []
    for rollout in rollouts:
        logprobs = rollout.completion.logprobs
        impossible += [(logprobs[index], rollout.problem) for index in impossible_positions(logprobs)]
    if not impossible:
        return 0, ""
    sentence = (
        f"{len(impossible):,} of {tokens:,} tokens of the batch have an impossible log-probability (the first: "
        f"{impossible[0][0]:g}, problem {impossible[0][1]})"
    )
    if len(impossible) > MAX_IMPOSSIBLE_SHARE * tokens:
        raise PolicyError(
            f"{sentence}, more than {100 * MAX_IMPOSSIBLE_SHARE:g} %: the generator's numbers are wrong, and the "
            "learning rate is not the cause. Look at its log; try another dtype in the model's table or an unquantised "
            "model; a server must be started with `python -m training.generation.serving`, so that it reports "
            "log-probabilities of what it draws from"
        )
    return len(impossible), sentence


def batch_metrics(groups: Sequence[RolloutGroup[Rollout]], version: int) -> dict[str, float]:
    """Return rewards, lengths and ages (versions per token) of a batch of policy ``version``."""
    rollouts = [rollout for group in groups for _, rollout in group.rollouts]
    lengths = [rollout.tokens for rollout in rollouts]
    ages = [version - token_version for rollout in rollouts for token_version in rollout.completion.versions]
    names = (*COMPONENTS, "total")
    rewards = {
        f"reward/{name}": statistics.fmean(rollout.reward.components()[name] for rollout in rollouts) for name in names
    }
    return {
        **rewards,
        "batch/attempts": float(len(rollouts)),
        "batch/pass_rate": statistics.fmean(rollout.reward.correct for rollout in rollouts),
        "length/trained_mean": statistics.fmean(lengths),
        "length/trained_max": float(max(lengths)),
        **({"age/token_mean": statistics.fmean(ages), "age/token_max": float(max(ages))} if ages else {}),
    }


def policy_metrics(results: Sequence[StepResult]) -> dict[str, float]:
    reduced = over_steps([result.statistics for result in results])
    return {
        "policy/loss": sum(result.loss for result in results),
        "policy/gradient_norm": max(result.gradient_norm for result in results),
        "policy/learning_rate": results[-1].learning_rate,
        **{f"policy/{name}": value for name, value in reduced.items()},
    }


def speed_metrics(
    results: Sequence[StepResult], timer: Timer, sampled_tokens: int, capacity: int, requested: int
) -> dict[str, float]:
    seconds = max(timer.elapsed_s, 1e-9)
    return {
        **timer.idle_shares(capacity, requested),
        "speed/step_s": seconds,
        "speed/train_s": sum(result.seconds for result in results),
        "speed/trained_tokens_s": sum(result.trained_tokens for result in results) / seconds,
        "speed/sampled_tokens_s": sampled_tokens / seconds,
    }


def batch_row(step: int, sampled: RolloutBatch[Rollout], whole: RolloutBatch[Rollout]) -> dict[str, Any]:
    """Return a row of ``batches.jsonl``."""
    fresh = {group.number for group in sampled.groups}
    stored = [group for group in whole.groups if group.number not in fresh]
    rows = [[request.group, request.index] for group in sampled.groups for request, _ in group.rollouts]
    row = {"step": step, "version": sampled.number, "attempts": rows}
    kept = [[request.problem, request.index] for group in stored for request, _ in group.rollouts]
    return row | ({"stored": kept} if kept else {})


def queue_metrics(ledger: RolloutLedger) -> dict[str, float]:
    """Return counts by state and drop reason."""
    names = ("running", "judging", "waiting", "ready", "admitted", "trained")
    dropped = {f"dropped/{reason}": float(count) for reason, count in ledger.dropped.items()}
    queued = {f"queue/{name}": float(getattr(ledger, name)) for name in names}
    return {**queued, **dropped, "queue/dropped": float(sum(ledger.dropped.values()))}
