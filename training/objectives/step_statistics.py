"""Numbers of a gradient step: each defines how micro-batches, ranks and steps add up to one number.

    micro-batches and ranks   `Statistic` (tensors): added up, or the larger kept
    steps of a batch          `Measure` (floats): means weighted by what they count, sums added, maxima kept

A mean over nothing is NaN, the largest of nothing -inf: the metrics leave both out.

One number is made of two such means at the step's end (`effective_share`).

Invariants: the trainer and the metrics know no statistic by its name. `policy_statistics` are measured in every step,
whatever the objective is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from training.objectives.base import ObjectiveInputs, Reduction, Statistic
from training.optimisation.distributed import DistributedContext

STEP_NAMES = frozenset({"loss", "gradient_norm", "learning_rate"})
"""Names of the optimiser step's own numbers, which are next to the statistics in the metrics."""

LARGEST_MEASURED = 20.0
"""Log-ratios count as at most this in measured ratios (4.9e8), so that one token does not make a mean infinite."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A statistic of a whole optimiser step: its value, and how many values a mean goes over."""

    reduction: Reduction
    value: float
    count: float = 0.0


def mean_of(values: Tensor, counts: Tensor) -> Statistic:
    """Return the mean of those [tokens] or [sequences] values where ``counts`` is True, in fp32 or better."""
    values = values.detach().to(torch.promote_types(values.dtype, torch.float32))
    return Statistic("mean", torch.where(counts, values, 0.0).sum(), counts.sum().to(values.dtype))


def sum_of(values: Tensor, counts: Tensor) -> Statistic:
    """Return the sum of those values where ``counts`` is True, in fp32 or better."""
    mean = mean_of(values, counts)
    return Statistic("sum", mean.total, torch.zeros_like(mean.count))


def max_of(values: Tensor, counts: Tensor) -> Statistic:
    """Return the largest of those values where ``counts`` is True; -inf where none is."""
    counted_values = torch.where(counts, values.detach(), -torch.inf)
    largest = counted_values.max() if len(counted_values) else values.new_tensor(-torch.inf)
    return Statistic("max", largest, values.new_zeros(()))


def counted(inputs: ObjectiveInputs) -> Tensor:
    """Return the micro-batch's mask, [tokens] bool; all True where it has none."""
    return torch.ones_like(inputs.sequence_index, dtype=torch.bool) if inputs.mask is None else inputs.mask


def k3(log_ratio: Tensor) -> Tensor:
    """Return r - 1 - log r per token: never negative, and in the mean over what the ratio's denominator draws their
    KL. Log-ratios count as at most `LARGEST_MEASURED`.
    """
    capped = log_ratio.clamp(max=LARGEST_MEASURED)
    return capped.exp() - 1 - capped


@torch.no_grad()
def policy_statistics(inputs: ObjectiveInputs) -> dict[str, Statistic]:
    """Return what is measured of the policy whatever the objective is; rho is its ratio to the generator's probability.

    ``kl_generator`` estimates KL(generator | policy) by rho - 1 - log rho; ``kl_reference`` in the same way
    KL(policy | reference), as if the policy had drawn the tokens; ``log_ratio_max`` is the largest |log rho|. The mean
    of rho² is measured for `effective_share`.
    Entropy and ``kl_reference`` are left out where the inputs hold nothing for them, and so are the numbers of
    `_mismatch`. Tokens of which no one knows the generator's probability count in the last two only.
    """
    counts = counted(inputs)
    # log-probabilities of tokens that do not count may be anything, infinities too
    drawn = counts if inputs.drawn is None else counts & inputs.drawn
    log_ratio = torch.where(drawn, inputs.logprobs - inputs.generator_logprobs, 0.0)
    ratio = log_ratio.clamp(max=LARGEST_MEASURED).exp()
    measured = {
        "ratio_mean": mean_of(ratio, drawn),
        "ratio_square": mean_of(ratio.square(), drawn),
        "ratio_max": max_of(ratio, drawn),
        "kl_generator": mean_of(k3(log_ratio), drawn),
        "log_ratio_max": max_of(log_ratio.abs(), drawn),
    }
    if inputs.on_policy is not None:
        measured |= _mismatch(log_ratio, drawn, inputs.on_policy)
    if inputs.entropy is not None:
        measured["entropy"] = mean_of(inputs.entropy, counts)
    if inputs.reference_logprobs is not None:
        measured["kl_reference"] = mean_of(k3(inputs.reference_logprobs - inputs.logprobs), counts)
    return measured


def _mismatch(log_ratio: Tensor, counts: Tensor, on_policy: Tensor) -> dict[str, Statistic]:
    """Return how far trainer and generator are apart where both had the same weights, and apart from it elsewhere.

    ``mismatch_share`` is the share of the tokens that were drawn with the weights that score them: the first minibatch
    of a batch, rollouts of the newest version from their first token on (later tokens of others see keys and values of
    older weights). Over these go ``mismatch_mean`` and ``mismatch_max`` of |log rho|, and two estimates of
    KL(generator | trainer): ``mismatch_k1``, the mean of -log rho, which may be negative, and ``mismatch_kl``, that of
    rho - 1 - log rho. Over all other tokens go ``stale_mean``, ``stale_max`` and ``stale_kl``: engine and drift.
    """
    same, other, distance = counts & on_policy, counts & ~on_policy, log_ratio.abs()
    return {
        "mismatch_share": mean_of(on_policy, counts),
        "mismatch_mean": mean_of(distance, same),
        "mismatch_max": max_of(distance, same),
        "mismatch_k1": mean_of(-log_ratio, same),
        "mismatch_kl": mean_of(k3(log_ratio), same),
        "stale_mean": mean_of(distance, other),
        "stale_max": max_of(distance, other),
        "stale_kl": mean_of(k3(log_ratio), other),
    }


def joined(measured: Mapping[str, Statistic], own: Mapping[str, Statistic]) -> dict[str, Statistic]:
    """Return the policy's statistics and the objective's own together.

    Raises:
        ValueError: the objective gave one of its own a name that is taken.
    """
    duplicates = (measured.keys() | STEP_NAMES) & own.keys()
    if duplicates:
        raise ValueError(
            f"statistics named {sorted(duplicates)} are measured already; give the objective's other names"
        )
    return {**measured, **own}


def added(first: Mapping[str, Statistic], second: Mapping[str, Statistic]) -> dict[str, Statistic]:
    """Return the statistics of two micro-batches of one step together."""
    return {name: statistic + second[name] for name, statistic in first.items()}


def measured_over_ranks(statistics: Mapping[str, Statistic], ranks: DistributedContext) -> dict[str, Measure]:
    """Return the step's numbers over all ranks; every rank calls it with the same names."""
    sums = sorted(name for name, statistic in statistics.items() if statistic.reduction != "max")
    largest = sorted(statistics.keys() - set(sums))
    numbers: dict[str, Measure] = {}
    if sums:
        pairs = [torch.stack([statistics[name].total, statistics[name].count]).double() for name in sums]
        for name, (total, count) in zip(sums, ranks.all_reduce(torch.stack(pairs)).tolist(), strict=True):
            mean = statistics[name].reduction == "mean"
            numbers[name] = Measure("mean", _mean(total, count), count) if mean else Measure("sum", total)
    if largest:
        maxima = ranks.all_reduce(torch.stack([statistics[name].total.double() for name in largest]), maximum=True)
        numbers |= {name: Measure("max", value) for name, value in zip(largest, maxima.tolist(), strict=True)}
    return effective_share(numbers)


def effective_share(numbers: Mapping[str, Measure]) -> dict[str, Measure]:
    """Return the numbers with ``ess`` in the place of the mean of rho².

    It is (sum rho)² / (N sum rho²), the share of the step's tokens that its importance weights leave; 1 on policy. Its
    fall precedes the collapse of asynchronous runs (arXiv 2505.24034 caps the weights against it).
    """
    rest = dict(numbers)
    square, mean = rest.pop("ratio_square", None), rest.get("ratio_mean")
    if square is None or mean is None:
        return dict(numbers)
    return {**rest, "ess": Measure("mean", mean.value**2 / square.value if square.count else math.nan, mean.count)}


def over_steps(steps: Sequence[Mapping[str, Measure]]) -> dict[str, float]:
    """Return one number per name over the optimiser steps of a batch, at least one."""
    return {name: _over_steps([step[name] for step in steps]) for name in steps[0]}


def _over_steps(measures: Sequence[Measure]) -> float:
    if measures[0].reduction == "max":
        return max(measure.value for measure in measures)
    if measures[0].reduction == "sum":
        return sum(measure.value for measure in measures)
    counted_measures = [measure for measure in measures if measure.count]
    return _mean(
        sum(measure.value * measure.count for measure in counted_measures),
        sum(measure.count for measure in counted_measures),
    )


def _mean(total: float, count: float) -> float:
    return total / count if count else math.nan
