"""Compute pass@1 on held-out problems, or how likely texts are after the policy's thoughts.

Invariants: rollouts that the verifier failed on, and problems with a refused prompt, are left out.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from curation.records import COUNTED_OUTCOMES, Outcome
from training.evaluation.estimators import mean_interval
from training.optimisation.packing import TrainingSample
from training.rollouts.rollouts import Rollout


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """Pass@1: the mean over problems of the share of correct rollouts, with a 95 % interval."""

    pass_rate: float
    low: float
    high: float
    problems: int
    rollouts: int
    unjudged: int  # rollouts that the verifier could not judge, and those of problems that were refused
    mean_tokens: float  # mean length

    @property
    def phrase(self) -> str:
        """Return the figures as a line."""
        return (
            f"held-out pass@1 {self.pass_rate:.3f} ({self.low:.3f} to {self.high:.3f}), {self.problems} problems, "
            f"{self.rollouts} attempts of {self.mean_tokens:.0f} tokens"
        )


def summarise_evaluation(rollouts_by_problem: Sequence[Sequence[Rollout | None]]) -> EvaluationResult:
    """Return the figures of rollouts by problem; a broken format counts as wrong, None as refused."""
    rates: list[float] = []
    groups = [[one for one in group if one is not None] for group in rollouts_by_problem if None not in group]
    failed = sum(len(group) for group in rollouts_by_problem if None in group)
    for group in groups:
        judged = [rollout for rollout in group if rollout.outcome is None or rollout.outcome in COUNTED_OUTCOMES]
        failed += len(group) - len(judged)
        if judged:
            rates.append(sum(rollout.outcome is Outcome.CORRECT for rollout in judged) / len(judged))
    estimate = mean_interval(rates, 0.0, 1.0)
    lengths = [rollout.tokens for group in groups for rollout in group]
    mean = statistics.fmean(lengths) if lengths else math.nan
    return EvaluationResult(estimate.mean, estimate.low, estimate.high, estimate.count, len(lengths), failed, mean)


@dataclass(frozen=True, slots=True)
class TextEvaluation:
    """The mean over problems of a text token's log-probability in nats, with a 95 % interval."""

    answer_logprob: float
    low: float
    high: float
    problems: int
    rollouts: int
    endless: int  # thoughts without an end
    mean_tokens: float  # of what was generated and scored

    @property
    def phrase(self) -> str:
        """Return the figures as a line."""
        return (
            f"held-out texts {self.answer_logprob:.3f} nats a token ({self.low:.3f} to {self.high:.3f}), "
            f"{self.problems} problems, {self.endless} of {self.rollouts} thoughts without an end"
        )


def text_samples(rollouts: Sequence[Rollout | None]) -> list[TrainingSample]:
    """Return a problem's finished chains, with the text after them."""
    return [
        TrainingSample(
            one.completion.prompt_ids,
            (*one.completion.token_ids, *one.reference_ids),
            None,
            0.0,
            0.0,
            answer_tokens=len(one.reference_ids),
        )
        for one in rollouts
        if one is not None and one.reference_ids
    ]


def summarise_texts(
    rollouts_by_problem: Sequence[Sequence[Rollout | None]], logprobs: Sequence[Tensor]
) -> TextEvaluation:
    """Return the figures; ``logprobs`` are [response], in `text_samples`' order."""
    scored, means = iter(logprobs), []
    for group in rollouts_by_problem:
        samples = zip(text_samples(group), scored, strict=False)
        if values := [float(one[-sample.answer_tokens :].double().mean()) for sample, one in samples]:
            means.append(statistics.fmean(values))
    estimate = mean_interval(means)
    asked = [one for group in rollouts_by_problem for one in group if one is not None]
    lengths = [one.tokens for one in asked]
    endless = sum(not one.reference_ids for one in asked)
    mean = statistics.fmean(lengths) if lengths else math.nan
    return TextEvaluation(estimate.mean, estimate.low, estimate.high, estimate.count, len(asked), endless, mean)
