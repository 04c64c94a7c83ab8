"""Convert verl's padded tensors into the arguments of our objectives and back.

Token weights w ≥ 0 are part of advantages: w · min(r A, clip(r) A) = min(r w A, clip(r) w A).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from training.config import ObjectiveSettings
from training.objectives.base import CreditInputs, ObjectiveInputs
from training.objectives.registry import objective_of
from training.rewards import Reward
from training.rollouts.impossible import HIGHEST_LOGPROB, LOWEST_LOGPROB


def weighted_advantages(
    rewards: Tensor,
    mask: Tensor,
    groups: Sequence[str],
    settings: ObjectiveSettings,
    *,
    max_tokens: int,
    minibatches: int = 1,
) -> Tensor:
    """Return [sequences, tokens] advantages times token weights, 0 outside the mask.

    Args:
        rewards: [sequences, tokens]; a row's sum is the total.
        mask: [sequences, tokens], 1 for generated tokens; a row of zeros is padding.
        max_tokens: rollouts are cut off there.
        minibatches: optimiser steps over these sequences.
    """
    lengths = mask.to(torch.int64).sum(-1).cpu()
    real = (lengths > 0).nonzero().flatten()
    numbers = {name: number for number, name in enumerate(dict.fromkeys(groups))}
    totals = rewards.to(torch.float64).sum(-1).cpu()
    inputs = CreditInputs(
        [Reward(correctness=total) for total in totals[real].tolist()],
        lengths[real],
        torch.tensor([numbers[groups[row]] for row in real.tolist()], dtype=torch.int64),
        truncated=(lengths[real] >= max_tokens).tolist(),
        max_tokens=max_tokens,
    )
    credit = objective_of(settings).credit(inputs, settings)
    folded = torch.zeros(len(groups), dtype=torch.float64)
    folded[real] = credit.advantages * credit.token_weights * minibatches
    return folded.to(rewards.device, torch.float32)[:, None] * mask.to(torch.float32)


def micro_batch_loss(
    logprobs: Tensor, generator_logprobs: Tensor, advantages: Tensor, mask: Tensor, settings: ObjectiveSettings
) -> tuple[Tensor, Mapping[str, float]]:
    """Return a micro-batch's loss, to sum over micro-batches and ranks, and statistics.

    Tensors are [sequences, tokens]; ``advantages`` are from `weighted_advantages`.
    """
    mask = mask.bool()
    drawn = generator_logprobs[mask]
    rows = mask.nonzero(as_tuple=True)[0]
    first = mask.to(torch.int8).argmax(-1, keepdim=True)
    per_sequence = advantages.gather(-1, first).squeeze(-1)
    inputs = ObjectiveInputs(
        logprobs=logprobs[mask],
        generator_logprobs=drawn,
        sequence_index=rows,
        advantages=per_sequence,
        token_weights=torch.ones_like(per_sequence),
        mask=(drawn >= LOWEST_LOGPROB) & (drawn <= HIGHEST_LOGPROB),
    )
    loss, statistics = objective_of(settings).loss(inputs, settings)
    return loss, {
        name: statistic.value if statistic.count or statistic.reduction != "mean" else 0.0
        for name, statistic in statistics.items()
    }
