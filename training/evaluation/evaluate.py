"""Pass@1 on problems that are not trained on, by the generators and verifiers of the run.

Every evaluation asks the same problems under the same seeds, so that two of them differ by the policy and not by the
draw. The interval is over problems: problems are what a benchmark samples, attempts at one problem are no independent
evidence.

Invariant: an attempt that the verifier failed on counts neither for nor against; a problem with none judged is left
out, and counted.
"""

from __future__ import annotations

import asyncio
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from curation.records import COUNTED_OUTCOMES, Outcome
from training.rollouts.rollouts import Rollout, RolloutGenerator, RolloutRunner
from training.rollouts.tasks import TrainingTask

_GROUPS = 1 << 40
"""Group numbers of evaluations, far above those of training."""


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """Pass@1: the mean over problems of the share of correct attempts, with a 95 % interval (normal, over problems).

    Example: ``EvaluationResult(pass_rate=0.42, low=0.36, high=0.48, problems=100, attempts=400, failed=0,
    tokens=31.5)``
    """

    pass_rate: float
    low: float
    high: float
    problems: int
    rollouts: int
    unjudged: int  # attempts that the verifier could not judge
    mean_tokens: float  # mean length


async def evaluate(
    rollouts: RolloutRunner,
    generator: RolloutGenerator,
    tasks: Sequence[TrainingTask],
    rollouts_per_problem: int,
    max_tokens: int,
) -> EvaluationResult:
    """Ask each task ``attempts`` times.

    Raises:
        PolicyError: the generator cannot.
    """

    async def one(place: int, task: TrainingTask, index: int) -> Rollout:
        made = await rollouts.generate(generator, task, _GROUPS + place, index, max_tokens)
        return await rollouts.verify(task, made, _GROUPS + place)

    asked = [(place, task, index) for place, task in enumerate(tasks) for index in range(rollouts_per_problem)]
    done = await asyncio.gather(*(one(*what) for what in asked))
    return summarise_evaluation(
        [done[start : start + rollouts_per_problem] for start in range(0, len(done), rollouts_per_problem)]
    )


def summarise_evaluation(groups: Sequence[Sequence[Rollout]]) -> EvaluationResult:
    """Return the figures of attempts, grouped by problem. A broken form is a wrong attempt."""
    rates: list[float] = []
    failed = 0
    for group in groups:
        judged = [one for one in group if one.outcome is None or one.outcome in COUNTED_OUTCOMES]
        failed += len(group) - len(judged)
        if judged:
            rates.append(sum(one.outcome is Outcome.CORRECT for one in judged) / len(judged))
    mean = statistics.fmean(rates) if rates else math.nan
    reach = 1.96 * statistics.stdev(rates) / math.sqrt(len(rates)) if len(rates) > 1 else math.nan
    lengths = [one.tokens for group in groups for one in group]
    return EvaluationResult(
        mean,
        max(mean - reach, 0.0),
        min(mean + reach, 1.0),
        len(rates),
        len(lengths),
        failed,
        statistics.fmean(lengths) if lengths else math.nan,
    )
