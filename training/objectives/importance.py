"""Importance ratios of an objective that clips them, and what may be done where engine and trainer disagree.

Three probabilities of one token:

    mu      the generator's, under which the token was drawn, whatever version of the weights that was
    pi_old  the trainer's own with the weights that it has at the start of the batch, before the batch's first step
    pi      the trainer's now

pi_old / mu holds both what the engines compute differently and how stale the token is; the trainer no longer has the
weights of older versions, so the two cannot be told apart for a stale token. clipped(r) below is the objective's own
min(r A, clip(r) A). The corrections:

    none            clipped(pi / mu), as in the paper: one ratio for the engines, for staleness and for the steps taken
    truncate        min(pi_old / mu, cap) · clipped(pi / pi_old); truncated importance sampling (TIS): Yao et al. 2025,
                    "Your Efficient RL Framework Secretly Brings You Off-Policy RL Training"
    mask            M(pi_old / mu) · clipped(pi / pi_old) with M(k) = k within [low, high] and 0 outside; IcePop: Ling
                    team 2025, "Small Leak Can Sink a Great Ship"; "Every Step Evolves" (arXiv 2510.18855)
    sequence_mask   clipped(pi / mu) for all tokens of a sequence whose geometric mean of pi_old / mu is within
                    [low, high], 0 for all of any other; Liu et al. 2025, "When Speed Kills Stability"; prime-rl

With one minibatch a batch, pi_old is pi: the ratio pi / pi_old is 1, its clip never acts, and `truncate` and `mask` are
the policy gradient weighed by the trainer's ratio to the generator. With several, the trainer scores the later ones
once more, before the batch's first step (`training.optimisation.trainer.Trainer.with_old_logprobs`).

Invariants: weights have no gradient. What is masked stays in the loss's denominators, as what is clipped does, so that
micro-batches and ranks add up. A sequence lies whole within one micro-batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from training.objectives.base import ObjectiveInputs, Statistic
from training.objectives.step_statistics import mean_of

Correction = Literal["none", "truncate", "mask", "sequence_mask"]

TRUNCATE_CAP = 2.0
"""C, the largest weight of `truncate`: 2 with Yao et al. 2025."""

MASK_BOUNDS = (0.5, 5.0)
"""Ratios between which `mask` keeps a token: 0.5 and 5 with IcePop."""

SEQUENCE_MASK_BOUNDS = (0.5, 2.0)
"""Geometric means between which `sequence_mask` keeps a sequence; prime-rl had 0.1 and 10."""


@dataclass(frozen=True, slots=True)
class ImportanceRatios:
    """What an objective clips, and what it weighs tokens by.

    ``weights`` is None where all weigh 1. ``statistics`` are shares of the counted tokens and sequences.
    """

    log_ratio: Tensor  # [tokens] with gradient, 0 for tokens that do not count
    weights: Tensor | None = None  # [tokens] without gradient
    statistics: dict[str, Statistic] = field(default_factory=dict)


def needs_old_logprobs(correction: Correction) -> bool:
    """Return whether pi_old is needed."""
    return correction != "none"


def importance_ratios(inputs: ObjectiveInputs, counts: Tensor, correction: Correction) -> ImportanceRatios:
    """Return the micro-batch's ratios and weights; pi_old is pi where ``inputs.old_logprobs`` is None.

    Args:
        counts: [tokens] bool, which tokens count.
        correction: the objective's.
    """
    # log-probabilities of tokens that do not count may be anything, infinities too
    to_generator = torch.where(counts, inputs.logprobs - inputs.generator_logprobs, 0.0)
    if correction == "none":
        return ImportanceRatios(to_generator)
    old = inputs.logprobs.detach() if inputs.old_logprobs is None else inputs.old_logprobs
    engines = torch.where(counts, old - inputs.generator_logprobs, 0.0)  # log pi_old / mu
    if correction == "sequence_mask":
        weights, statistics = _sequence_weights(engines, inputs, counts)
        return ImportanceRatios(to_generator, weights, statistics)
    if correction == "truncate":
        limit = math.log(TRUNCATE_CAP)
        weights = engines.clamp(max=limit).exp()
        statistics = {"correction_truncated": mean_of(engines > limit, counts)}
    else:
        outside = _outside(engines, MASK_BOUNDS)
        weights = torch.where(outside, 0.0, engines).exp().masked_fill(outside, 0.0)
        statistics = {"correction_masked": mean_of(outside, counts)}
    return ImportanceRatios(torch.where(counts, inputs.logprobs - old, 0.0), weights, statistics)


def _sequence_weights(engines: Tensor, inputs: ObjectiveInputs, counts: Tensor) -> tuple[Tensor, dict[str, Statistic]]:
    """Return [tokens] 1 for those of the sequences that are kept, 0 for others, and the share that is not."""
    sums = torch.zeros(len(inputs.advantages), dtype=engines.dtype, device=engines.device)
    lengths = sums.index_add(0, inputs.sequence_index, counts.to(engines.dtype))
    means = sums.index_add(0, inputs.sequence_index, engines) / lengths.clamp(min=1)
    outside = _outside(means, SEQUENCE_MASK_BOUNDS)
    statistics = {"correction_masked_sequences": mean_of(outside, lengths > 0)}
    return (~outside).to(engines.dtype)[inputs.sequence_index], statistics


def _outside(log_ratios: Tensor, bounds: tuple[float, float]) -> Tensor:
    low, high = bounds
    return (log_ratios < math.log(low)) | (log_ratios > math.log(high))
