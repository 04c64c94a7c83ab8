"""Statistics of a step, combined over micro-batches and ranks (tensors), then over a batch's steps (floats)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import get_args

import torch
from torch import Tensor

from training.objectives.base import ObjectiveInputs, Reduction, Statistic
from training.optimisation.distributed import DistributedContext

STEP_NAMES = frozenset({"loss", "gradient_norm", "learning_rate"})
"""Names that statistics must not have."""

LARGEST_MEASURED = 20.0
"""Max log-ratio in measured ratios, so that means are finite."""


def mean_of(values: Tensor, counts: Tensor) -> Statistic:
    """Return the mean where ``counts`` is True, in fp32 or better."""
    values = values.detach().to(torch.promote_types(values.dtype, torch.float32))
    return Statistic("mean", torch.where(counts, values, 0.0).sum(), counts.sum().to(values.dtype))


def max_of(values: Tensor, counts: Tensor) -> Statistic:
    """Return the maximum where ``counts`` is True, or -inf."""
    counted_values = torch.where(counts, values.detach(), -torch.inf)
    largest = counted_values.max() if len(counted_values) else values.new_tensor(-torch.inf)
    return Statistic("max", largest, values.new_zeros(()))


def counted(inputs: ObjectiveInputs) -> Tensor:
    """Return [tokens] the mask; all True without one."""
    return torch.ones_like(inputs.sequence_index, dtype=torch.bool) if inputs.mask is None else inputs.mask


def k3(log_ratio: Tensor) -> Tensor:
    """Return r - 1 - log r per token, a KL estimate that is never negative."""
    capped = log_ratio.clamp(max=LARGEST_MEASURED)
    return capped.exp() - 1 - capped


@torch.no_grad()
def policy_statistics(inputs: ObjectiveInputs) -> dict[str, Statistic]:
    """Return the statistics of a policy with ratio rho to the generator.

    ``kl_generator`` estimates KL(generator | policy), ``kl_reference`` KL(policy | reference); ``mismatch_…`` are of
    tokens from the same weights, ``stale_…`` from older ones. Tokens without a generator's probability count only in
    ``entropy`` and ``kl_reference``.
    """
    counts = counted(inputs)
    drawn = counts if inputs.drawn is None else counts & inputs.drawn
    log_ratio = inputs.log_ratio(drawn)
    ratio = log_ratio.clamp(max=LARGEST_MEASURED).exp()
    measured = {
        "ratio_mean": mean_of(ratio, drawn),
        "ratio_square": mean_of(ratio.square(), drawn),
        "ratio_max": max_of(ratio, drawn),
        "kl_generator": mean_of(k3(log_ratio), drawn),
        "log_ratio_max": max_of(log_ratio.abs(), drawn),
    }
    if inputs.on_policy is not None:
        same, stale = drawn & inputs.on_policy, drawn & ~inputs.on_policy
        measured |= {
            "mismatch_share": mean_of(inputs.on_policy, drawn),
            "mismatch_mean": mean_of(log_ratio.abs(), same),
            "mismatch_max": max_of(log_ratio.abs(), same),
            "mismatch_kl": mean_of(k3(log_ratio), same),
            "stale_mean": mean_of(log_ratio.abs(), stale),
            "stale_kl": mean_of(k3(log_ratio), stale),
        }
    if inputs.entropy is not None:
        measured["entropy"] = mean_of(inputs.entropy, counts)
    if inputs.reference_logprobs is not None:
        measured["kl_reference"] = mean_of(k3(inputs.reference_logprobs - inputs.logprobs), counts)
    return measured


def joined(measured: Mapping[str, Statistic], own: Mapping[str, Statistic]) -> dict[str, Statistic]:
    """Return the policy's statistics and the objective's own."""
    duplicates = (measured.keys() | STEP_NAMES) & own.keys()
    if duplicates:
        raise ValueError(f"statistics named {sorted(duplicates)} are measured already; rename the objective's")
    return {**measured, **own}


def measured_over_ranks(statistics: Mapping[str, Statistic], ranks: DistributedContext) -> dict[str, Statistic]:
    """Return the step's statistics in floats, with ``ess`` for ``ratio_square``; all ranks need the same names."""
    numbers: dict[str, Statistic] = {}
    for reduction in get_args(Reduction):
        names = sorted(name for name, statistic in statistics.items() if statistic.reduction == reduction)
        if names:
            values = [value for name in names for value in (statistics[name].total, statistics[name].count)]
            own = [torch.as_tensor(value, dtype=torch.float64, device=ranks.device) for value in values]
            stacked = torch.stack(own).view(-1, 2)
            pairs = ranks.all_reduce(stacked, maximum=reduction == "max").tolist()
            numbers |= {name: Statistic(reduction, *pair) for name, pair in zip(names, pairs, strict=True)}
    square, mean = numbers.pop("ratio_square", None), numbers.get("ratio_mean")
    if square is not None and mean is not None:  # (sum rho)² / (N sum rho²) of arXiv 2505.24034
        share = mean.value**2 / square.value if square.count else 0.0
        numbers["ess"] = Statistic("mean", share * float(mean.count), mean.count)
    return numbers


def over_steps(steps: Sequence[Mapping[str, Statistic]]) -> dict[str, float]:
    """Combine a batch's steps; means are weighted by counts."""
    return {name: reduce(add, (step[name] for step in steps)).value for name in steps[0]}
