"""Inputs and outputs of objectives.

Invariant: a minibatch's loss is the sum of its micro-batches' losses over all ranks, as token weights contain the
minibatch's denominators.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from training.rewards import Reward

Reduction = Literal["mean", "max"]


@dataclass(frozen=True, slots=True)
class ObjectiveInputs:
    """The generated tokens of a micro-batch of whole sequences.

    Example: a group of two sequences, with 2 and 1 tokens, in the only batch::

        ObjectiveInputs(logprobs=[-1.0, -2.0, -0.5], generator_logprobs=[-1.1, -2.0, -0.4],
                        sequence_index=[0, 0, 1], advantages=[1.0, -1.0], token_weights=[1 / 3, 1 / 3])
    """

    logprobs: Tensor  # [tokens] under the policy in training, with gradient
    generator_logprobs: Tensor  # [tokens] under the sampling distribution
    sequence_index: Tensor  # [tokens] int64, ascending, 0 … sequences - 1
    advantages: Tensor  # [sequences]
    token_weights: Tensor  # [sequences] of each of its tokens
    mask: Tensor | None = None  # [tokens] bool, False for tokens that do not count; None: all count
    entropy: Tensor | None = None  # [tokens] of the policy's distribution, with gradient if needed
    reference_logprobs: Tensor | None = None  # [tokens] under the reference policy, if one is needed
    on_policy: Tensor | None = None  # [tokens] bool, in a rollout by the current weights alone; None: unknown
    drawn: Tensor | None = None  # [tokens] bool, `generator_logprobs` is known, else 0; None: of all
    answer: Tensor | None = None  # [tokens] bool, of a reference text; None: none
    answer_weights: Tensor | None = None  # [sequences] of the reference text's tokens, from a second pass
    rewards: Tensor | None = None  # [sequences] total rewards; None: not known
    teacher_logprobs: Tensor | None = None  # [tokens] of a teacher, NaN if not asked; None: of all

    def per_token(self, values: Tensor) -> Tensor:
        """Return [tokens] the value of each token's sequence."""
        return values.to(torch.promote_types(self.logprobs.dtype, torch.float32))[self.sequence_index]

    def per_sequence(self, values: Tensor) -> Tensor:
        """Return [sequences] sums of [tokens] values."""
        sums = torch.zeros(len(self.advantages), dtype=values.dtype, device=values.device)
        return sums.index_add(0, self.sequence_index, values)

    def log_ratio(self, counts: Tensor) -> Tensor:
        """Return [tokens] log-ratios of policy and generator, 0 where ``counts`` is False."""
        return torch.where(counts, self.logprobs - self.generator_logprobs, 0.0)


@dataclass(frozen=True, slots=True)
class CreditInputs:
    """A minibatch over all ranks, without excluded rollouts."""

    rewards: Sequence[Reward]
    lengths: Tensor  # [sequences] int64, generated tokens
    groups: Tensor  # [sequences] int64, a number per group
    answers: Sequence[str | None] = ()  # [sequences] the judged answer, or None; empty: not known
    truncated: Sequence[bool] = ()  # [sequences] cut off at the max tokens; empty: not known
    values: Sequence[float | None] = ()  # [sequences] their problem's value, or None; empty: all None
    max_tokens: int | None = None  # the run's `rewards.max_length`; None: not known
    has_text: Sequence[bool] = ()  # [sequences] a reference text follows; empty: none has one

    def only(self, rows: Tensor) -> CreditInputs:
        """Return these rows, without values and reference texts."""
        rewards, answers, truncated = (
            [values[row] for row in rows.tolist()] if values else ()
            for values in (self.rewards, self.answers, self.truncated)
        )
        return CreditInputs(
            rewards, self.lengths[rows], self.groups[rows], answers, truncated, max_tokens=self.max_tokens
        )


@dataclass(frozen=True, slots=True)
class GroupCredit:
    """Advantages and token weights of a minibatch: [sequences] float64.

    ``taught``: bool, whether a teacher scores them; None: none.
    """

    advantages: Tensor
    token_weights: Tensor
    taught: Tensor | None = None


@dataclass(frozen=True, slots=True)
class ScoredGroups:
    """A minibatch over all ranks for a second pass.

    ``scores`` sum log-ratios to the reference, or a reference text's log-probabilities.
    """

    advantages: Tensor  # [sequences] float64, those of `GroupCredit`
    scores: Tensor  # [sequences] float64
    groups: Tensor  # [sequences] int64, a number per group
    values: Tensor | None = None  # [sequences] float64, their problem's value, NaN if unknown


@dataclass(frozen=True, slots=True)
class GroupWeights:
    """Results of a second pass."""

    advantages: Tensor  # [sequences] float64
    answer_weights: Tensor | None = None  # [sequences] float64, of reference texts
    estimates: Mapping[int, float] = field(default_factory=dict)  # of each group's value


@dataclass(frozen=True, slots=True)
class ObjectiveNeeds:
    """Needs of an objective.

    Attributes:
        uses_reference: the recipe's, or the run's first model.
        generator_logprobs: if False, attempts may lack them.
        scores_answers: the second pass scores reference texts.
        teacher: the recipe's, or the run's first model, shown a correct attempt.
    """

    entropy_gradient: bool = False
    uses_reference: bool = False
    generator_logprobs: bool = True
    scores_answers: bool = False
    second_pass: bool = True
    teacher: Literal["model", "attempts"] | None = None


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic: 0-d tensors without gradient of micro-batches, floats of optimiser steps.

    ``total`` is a sum, or the ``max`` (-inf without values); ``count`` is a ``mean``'s number of values.
    """

    reduction: Reduction
    total: Tensor | float
    count: Tensor | float = 0.0

    def __add__(self, other: Statistic) -> Statistic:
        if self.reduction != "max":
            return Statistic(self.reduction, self.total + other.total, self.count + other.count)
        if isinstance(self.total, Tensor) and isinstance(other.total, Tensor):
            return Statistic("max", torch.maximum(self.total, other.total), self.count)
        return Statistic("max", max(float(self.total), float(other.total)))

    @property
    def value(self) -> float:
        """Return the mean (NaN without values) or maximum."""
        if self.reduction != "mean":
            return float(self.total)
        return float(self.total) / float(self.count) if self.count else math.nan
