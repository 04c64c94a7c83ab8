"""Score held-out reference texts after the policy's thoughts (`jepo`), per token; endless thoughts are only counted."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from training.evaluation.estimators import mean_interval
from training.optimisation.packing import TrainingSample
from training.rollouts.rollouts import Rollout


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
        """Return the figures as a line of text."""
        return (
            f"held-out texts {self.answer_logprob:.3f} nats a token ({self.low:.3f} to {self.high:.3f}), "
            f"{self.problems} problems, {self.endless} of {self.rollouts} thoughts without an end"
        )


def text_samples(rollouts_by_problem: Sequence[Sequence[Rollout | None]]) -> list[list[TrainingSample]]:
    """Return each problem's finished chains, with the text after them."""
    return [
        [
            TrainingSample(
                one.completion.prompt_ids,
                (*one.completion.token_ids, *one.reference_ids),
                None,
                0.0,
                0.0,
                answer_tokens=len(one.reference_ids),
            )
            for one in group
            if one is not None and one.reference_ids
        ]
        for group in rollouts_by_problem
    ]


def summarise_texts(
    rollouts_by_problem: Sequence[Sequence[Rollout | None]], scored: Sequence[Sequence[tuple[TrainingSample, Tensor]]]
) -> TextEvaluation:
    """Return the figures.

    Args:
        scored: the samples of `text_samples`, each with [response] log-probabilities.
    """
    means = [
        statistics.fmean(float(values[-sample.answer_tokens :].double().mean()) for sample, values in group)
        for group in scored
        if group
    ]
    estimate = mean_interval(means)
    asked = [one for group in rollouts_by_problem for one in group if one is not None]
    lengths = [one.tokens for one in asked]
    return TextEvaluation(
        estimate.mean,
        estimate.low,
        estimate.high,
        estimate.count,
        len(asked),
        sum(not one.reference_ids for one in asked),
        statistics.fmean(lengths) if lengths else math.nan,
    )
