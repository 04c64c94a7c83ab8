"""Compute pass@1 on held-out problems.

Invariants: rollouts that the verifier failed on, and problems with a refused prompt, are left out.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from curation.records import COUNTED_OUTCOMES, Outcome
from training.evaluation.estimators import mean_interval
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
